"""Which addresses are let pass: none that is not on the public internet's, however it is
written.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.interfaces.web.guard import (
    Address,
    AddressGuard,
    is_own,
    is_public,
    parse_url,
    resolve_host,
)
from agentd.interfaces.web.web_faults import WebFault
from tests.web.sites import Names

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.1.2.3",
    "127.255.255.255",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.0.1",
    "192.168.255.255",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "168.63.129.16",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::1",
    "2001:db8::1",
    "2001:10::1",
    "2001:20::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "5f00::1",
    "4000::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.9.9.9",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.167.1.1",
]
PUBLIC += ["2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001::1", "2620:fe::fe"]
BY_NAME = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://0x7f.1/",
    "http://0/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://127.0.0.1./",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://0.0.0.0/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_what_is_not_the_public_internet_is_known_as_such(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_known_as_such(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_nothing_is_public_that_python_does_not_take_for_global(
    address: IPv4Address | IPv6Address,
) -> None:
    assert not is_public(address) or (address.is_global and not address.is_multicast)


@pytest.mark.parametrize("url", BY_NAME)
async def test_however_this_machine_is_written_it_is_not_reached(url: str) -> None:
    async def by_the_system(host: str, port: int) -> Sequence[Address]:
        try:  # as every resolver reads figures; tests ask none for what looks like another machine
            return [IPv4Address(socket.inet_aton(host))]
        except OSError:
            return await resolve_host(host, port)

    with pytest.raises(WebFault) as refused:
        await AddressGuard(resolve=by_the_system).admit(parse_url(url))
    assert refused.value.kind in ("private", "no_url")


async def test_one_private_address_among_several_is_enough() -> None:
    names = Names({"a.example": [["8.8.8.8", "10.0.0.7", "1.1.1.1"]]})
    with pytest.raises(WebFault, match=r"a\.example, at 10\.0\.0\.7, is not") as refused:
        await AddressGuard(resolve=names, is_own=lambda _: False).admit(
            parse_url("http://a.example/")
        )
    assert refused.value.kind == "private"


async def test_a_public_address_of_this_machine_itself_is_refused() -> None:
    names = Names({"a.example": ["8.8.8.8"]})
    target = parse_url("http://a.example/")
    assert await AddressGuard(resolve=names, is_own=lambda _: False).admit(target)
    with pytest.raises(WebFault, match="not on the public internet"):
        await AddressGuard(resolve=names, is_own=lambda _: True).admit(target)


def test_this_machine_knows_its_own_addresses() -> None:
    assert is_own(ip_address("127.0.0.1"))
    assert not is_own(ip_address("127.0.0.3"))  # it is reached from 127.0.0.1


async def test_a_private_network_is_reached_where_the_owner_has_named_it() -> None:
    names = Names({"nas.lan": ["192.168.1.7"], "box.lan": ["192.168.2.7"]})
    watched = AddressGuard(resolve=names, private=(ip_network("192.168.1.0/24"),))
    assert await watched.admit(parse_url("http://nas.lan/")) == [ip_address("192.168.1.7")]
    with pytest.raises(WebFault, match="box"):
        await watched.admit(parse_url("http://box.lan/"))


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.example/", "file:///etc/passwd", "gopher://a.example/", "javascript:alert(1)"),
        *(
            "data:text/html,x",
            "a.example",
            "",
            "//a.example/",
            "http://",
            "http:///x",
            "https://:80/",
        ),
        *("http://user@a.example/", "http://user:word@a.example/", "http://:word@a.example/"),
        *(
            "http://a.example:99999/",
            "http://a.example:x/",
            "http://a example/",
            "http://a.example/\n",
        ),
        *("http://a.example\\@b.example/", "http://a.example/\x00", "http://[::1/", "http://[x]/"),
        *('http://a.example/"x', "http://a.example/<x>", "http://a.example/" + "x" * 5000),
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(WebFault) as refused:
        parse_url(url)
    assert refused.value.kind == "no_url"


def test_an_address_is_taken_apart_once() -> None:
    target = parse_url("HTTPS://Bücher.Example.:8443/a b?c=d#e".replace(" ", "%20"))
    assert (target.host, target.port, target.is_secure) == ("xn--bcher-kva.example", 8443, True)
    assert parse_url("../x", parse_url("http://a.example/b/c/d")).url == "http://a.example/b/x"
    assert parse_url("//b.example/y", target).url == "https://b.example/y"


@pytest.mark.parametrize(
    ("url", "settings", "kind"),
    [
        ("http://a.example:22/", {"ports": (80, 443)}, "port"),
        ("http://a.example/", {"ports": (443,)}, "port"),
        ("http://a.example/", {"denied": ("a.example",)}, "denied"),
        ("http://x.a.example/", {"denied": ("A.Example.",)}, "denied"),
        ("http://bücher.example/", {"denied": ("bücher.example",)}, "denied"),
        ("http://xn--bcher-kva.example/", {"denied": ("bücher.example",)}, "denied"),
        ("http://8.8.8.8/", {"denied": ("8.8.8.8",)}, "denied"),
        ("http://[2606:4700::1]/", {"denied": ("[2606:4700::1]",)}, "denied"),
        ("http://b.example/", {"allowed": ("a.example",)}, "denied"),
        ("http://nota.example/", {"allowed": ("a.example",)}, "denied"),
        ("http://a.example.b.example/", {"allowed": ("a.example",)}, "denied"),
        ("http://x.a.example/", {"allowed": ("a.example",), "denied": ("x.a.example",)}, "denied"),
        ("http://a.example/", {"allowed": ("a.example",)}, ""),
        ("http://x.a.example/", {"allowed": ("a.example",)}, ""),
        ("http://nota.example/", {"denied": ("a.example",)}, ""),
        ("https://a.example/", {"ports": (443,)}, ""),
    ],
)
async def test_the_owner_says_which_hosts_and_ports(url: str, settings: dict, kind: str) -> None:
    class Anywhere(Names):
        async def __call__(self, host, port):
            return [ip_address("8.8.8.8")]

    watched = AddressGuard(resolve=Anywhere({}), is_own=lambda _: False, **settings)
    if not kind:
        assert await watched.admit(parse_url(url))
        return
    with pytest.raises(WebFault) as refused:
        await watched.admit(parse_url(url))
    assert refused.value.kind == kind


async def test_a_name_that_nobody_has_is_told() -> None:
    with pytest.raises(WebFault, match=r"there is no host nowhere\.example"):
        await AddressGuard(resolve=Names({})).admit(parse_url("http://nowhere.example/"))
