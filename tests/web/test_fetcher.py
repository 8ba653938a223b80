"""A page is asked for where it was checked, once, within its bounds, with nothing of ours."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from ipaddress import ip_network

import httpx
import pytest
import trustme

from agentd.interfaces.web.guard import parse_url
from agentd.interfaces.web.web_faults import WebFault
from tests.web.sites import INSIDE, SECRET, Names, fetcher, guard, leads_to, page, site

EVERYWHERE = (ip_network("127.0.0.0/8"),)  # the guard is off: the negative control


async def refused(kind: str, url: str, by=None) -> WebFault:
    with pytest.raises(WebFault) as found:
        await (by or fetcher()).get(url)
    assert found.value.kind == kind, found.value.message
    return found.value


async def test_a_page_comes_with_its_type_and_says_who_asks() -> None:
    async with site({"/x": page("hello", "text/html; charset=ISO-8859-2")}) as here:
        got = await fetcher().get(here.url("/x?a=1#part"))
    assert (got.status, got.body, got.is_cut) == (200, b"hello", False)
    assert (got.media_type, got.charset) == ("text/html", "iso-8859-2")
    assert got.url == here.url("/x?a=1")
    (head,) = here.heads
    assert head.startswith("GET /x?a=1 HTTP/1.1\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
    assert fields["host"] == f"site.example:{here.port}"
    assert fields["user-agent"].startswith("agentd/")
    assert fields.keys() == {"host", "user-agent", "accept", "accept-encoding", "connection"}


async def test_no_cookie_is_kept_and_no_proxy_taken_from_the_environment(monkeypatch) -> None:
    async with site({"/": page("x", Set_Cookie="a=b")}) as here, site({}) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        by = fetcher()
        await by.get(here.url())
        await by.get(here.url())
        async with httpx.AsyncClient() as client:  # that the variables mean something at all
            await client.get("http://127.0.0.1:1/")
    assert len(here.heads) == 2
    assert not any("cookie" in head.lower() for head in here.heads)
    assert len(proxy.heads) == 1


async def test_a_private_server_is_not_reached_and_without_the_guard_it_is() -> None:
    names = Names({"trap.example": [INSIDE]})
    async with site({}, INSIDE) as inside:
        url = inside.url("/secret", "trap.example")
        await refused("private", url, fetcher(guard(names)))
        assert inside.heads == []
        got = await fetcher(guard(names, private=EVERYWHERE)).get(url)
    assert got.body.decode() == SECRET


async def test_a_name_that_changes_its_address_is_asked_for_once() -> None:
    async with site({"/": page("outside")}) as outside, site({}, INSIDE, outside.port) as inside:
        url = outside.url("/", "rebind.example")
        names = Names({"rebind.example": ["127.0.0.1", INSIDE]})
        got = await fetcher(guard(names)).get(url)
        assert got.body == b"outside"
        assert names.asked == ["rebind.example"]
        assert inside.heads == []

        # The same with a client that checks a name and then looks it up again, as clients do.
        names = Names({"rebind.example": ["127.0.0.1", INSIDE]})
        (checked,) = await guard(names).admit(parse_url(url))
        (used,) = await names("rebind.example", outside.port)
        assert (str(checked), str(used)) == ("127.0.0.1", INSIDE)
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"http://{used}:{outside.port}/")).text == SECRET


@pytest.mark.parametrize("status", ["301 M", "302 F", "303 S", "307 T", "308 P"])
async def test_what_leads_into_a_private_network_is_not_followed(status: str) -> None:
    names = Names({"site.example": ["127.0.0.1"], "trap.example": [INSIDE]})
    async with site({}, INSIDE) as inside:
        for place in (inside.url("/", "trap.example"), inside.url("/", INSIDE)):
            async with site({"/": leads_to(place, status)}) as here:
                fault = await refused("private", here.url(), fetcher(guard(names)))
                assert fault.is_told
                assert inside.heads == []
                got = await fetcher(guard(names, private=EVERYWHERE)).get(here.url())
                assert got.body.decode() == SECRET
                assert inside.heads.pop()


async def test_a_name_is_looked_up_anew_at_each_step_of_a_chain() -> None:
    names = Names({"site.example": ["127.0.0.1", INSIDE]})
    async with site({"/": leads_to("/next")}) as here, site({}, INSIDE, here.port) as inside:
        await refused("private", here.url(), fetcher(guard(names)))
        assert inside.heads == []
        assert len(here.heads) == 1


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        *(("ftp://site.example/", "no_url"), ("file:///etc/passwd", "no_url")),
        *(("http://me:word@site.example/", "no_url"), ("http://site.example:22/", "port")),
        *(("javascript:alert(1)", "no_url"), ("//denied.example/", "denied")),
        ("http://nowhere.example/", "no_host"),
    ],
)
async def test_where_a_page_leads_is_checked_as_the_first_address_was(
    place: str, kind: str
) -> None:
    async with site({"/": leads_to(place)}) as here:
        by = guard(denied=("denied.example",), ports=(80, here.port))
        await refused(kind, here.url(), fetcher(by))


async def test_a_chain_has_an_end_and_gives_the_page_at_its_end() -> None:
    chain = {f"/{n}": leads_to(f"/{n + 1}") for n in range(3)}
    async with site({**chain, "/3": page("there"), "/loop": leads_to("/loop")}) as here:
        got = await fetcher().get(here.url("/0"))
        assert (got.body, got.url) == (b"there", here.url("/3"))
        assert (await refused("redirects", here.url("/loop"))).message.endswith("more than 3 times")
        await refused("redirects", here.url("/0"), fetcher(redirects=2))


async def test_more_than_may_be_is_not_read() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    lied = page("x" * 500_000).replace(b"Content-Length: 500000", b"Content-Length: 900000000")
    async with site({"/long": page("y" * 100_001), "/endless": endless, "/lied": lied}) as here:
        for path in ("/long", "/endless", "/lied"):
            got = await fetcher().get(here.url(path))
            assert (len(got.body), got.is_cut) == (100_000, True), path
        got = await fetcher(most=100_001).get(here.url("/long"))
        assert (len(got.body), got.is_cut) == (100_001, False)


async def test_what_is_packed_small_is_not_unpacked_beyond_the_bound() -> None:
    bomb = gzip.compress(bytes(300_000_000), 9)  # 300 MB in 300 kB
    whole = gzip.compress(b"hello " * 100)
    pages = {
        "/bomb": page(bomb, "text/plain", Content_Encoding="gzip"),
        "/twice": page(gzip.compress(bomb), "text/plain", Content_Encoding="gzip, gzip"),
        "/fine": page(whole, "text/plain", Content_Encoding="gzip"),
        "/cut": page(whole[:30], "text/plain", Content_Encoding="gzip"),
        "/zlib": page(zlib.compress(b"x"), "text/plain", Content_Encoding="deflate"),
        "/none": page(b"no gzip at all", "text/plain", Content_Encoding="gzip"),
    }
    async with site(pages) as here:
        got = await fetcher().get(here.url("/bomb"))
        assert (len(got.body), got.is_cut) == (100_000, True)
        assert (await fetcher().get(here.url("/fine"))).body == b"hello " * 100
        assert (await fetcher().get(here.url("/cut"))).is_cut
        for path in ("/twice", "/zlib", "/none"):
            await refused("encoding", here.url(path))


async def test_a_page_that_was_packed_in_parts_is_read_whole() -> None:
    parts = gzip.compress(b"one ") + gzip.compress(b"two") + bytes(10)
    bomb = gzip.compress(b"x") + gzip.compress(bytes(300_000_000), 9)
    head = page(b"", "text/plain", Content_Encoding="gzip", Transfer_Encoding="chunked")
    one_by_one = b"".join(b"1\r\n%c\r\n" % byte for byte in parts)
    pages = {
        "/parts": page(parts, "text/plain", Content_Encoding="gzip"),
        "/slow": head + one_by_one + b"0\r\n\r\n",
        "/cut": page(parts[:-25], "text/plain", Content_Encoding="gzip"),
        "/bomb": page(bomb, "text/plain", Content_Encoding="gzip"),
    }
    async with site(pages) as here:
        for path in ("/parts", "/slow"):
            got = await fetcher().get(here.url(path))
            assert (got.body, got.is_cut) == (b"one two", False)
        assert (await fetcher().get(here.url("/cut"))).is_cut
        got = await fetcher().get(here.url("/bomb"))
        assert (len(got.body), got.is_cut) == (100_000, True)


async def test_a_server_that_takes_for_ever_is_left() -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def drop_by_drop(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def header_by_header(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: x\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def again_and_again(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        writer.write(leads_to("/again"))

    pages = {"/a": silent, "/b": drop_by_drop, "/c": header_by_header, "/again": again_and_again}
    async with site(pages) as here:
        for path in pages:
            by = fetcher(seconds=0.3, redirects=10_000)
            assert (await refused("timeout", here.url(path), by)).message.endswith("than 0.3 s")


async def test_a_resolver_that_hangs_is_left() -> None:
    async def hangs(host: str, port: int):
        await asyncio.Event().wait()

    await refused("timeout", "http://a.example/", fetcher(guard(hangs), seconds=0.1))


async def test_what_is_no_http_is_told_in_words() -> None:
    async def nonsense(writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async def nothing(writer: asyncio.StreamWriter) -> None:
        return

    async def huge_head(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 300_000 + b"\r\n\r\n")

    cut = page("x" * 100).replace(b"Content-Length: 100", b"Content-Length: 200")
    async with site({"/a": nonsense, "/b": nothing, "/c": cut, "/d": huge_head}) as here:
        for path in ("/a", "/b", "/c", "/d"):
            await refused("protocol", here.url(path))
    await refused("unreachable", here.url("/a"))


async def test_of_several_addresses_the_next_one_is_tried() -> None:
    async with site({"/": page("there")}) as here:
        names = Names({"two.example": [["127.0.0.9", "127.0.0.1"]]})
        by = guard(names, private=EVERYWHERE)
        assert (await fetcher(by).get(here.url("/", "two.example"))).body == b"there"


async def test_the_certificate_is_the_one_of_the_name_though_an_address_is_asked() -> None:
    authority = trustme.CA()
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(ours)
    authority.issue_cert("site.example").configure_cert(theirs)
    told: list[str | None] = []
    theirs.sni_callback = lambda _, name, __: told.append(name)
    names = Names({"site.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]})
    async with site({"/": page("safe")}, context=theirs) as here:
        by = fetcher(guard(names), context=ours)
        assert (await by.get(here.url(scheme="https"))).body == b"safe"
        assert told == ["site.example"]
        await refused("certificate", here.url("/", "other.example", "https"), by)
        await refused("certificate", here.url(scheme="https"))  # an authority that nobody knows
        assert len(here.heads) == 1


async def test_headers_of_a_service_go_to_it_alone() -> None:
    async with site({"/": leads_to("/on")}) as here:
        await refused("redirects", here.url(), fetcher(redirects=0))
        assert len(here.heads) == 1
