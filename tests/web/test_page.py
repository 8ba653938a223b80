"""PageReader become markdown in a process of its own; texts stay as they are; all else is named."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentd.interfaces.web.fetcher import Fetched
from agentd.interfaces.web.page import COMMAND, PageReader, charset_of
from agentd.interfaces.web.reading import Web
from agentd.interfaces.web.web_faults import WebFault
from tests.web.sites import fetcher, page, site

ARTICLE = """<html><head><title>Boats
 of  the north</title></head><body><nav><a href="/">Home</a></nav><article><h2>Varnish</h2>
<p>The boat is <a href="../blue?a=1&amp;b=2">blue</a> and needs varnish, a lot of it, before the spring
comes and the water rises in the harbour again.</p><ul><li>one brush</li><li>two tins</li></ul>
<table><tr><th>coat</th><th>hours</th></tr><tr><td>first</td><td>12</td></tr></table>
<p>See <a href="https://other.example/y">the other place</a> for more of that sort.</p></article>
<script>alert("no")</script></body></html>"""


def fetched(body: str | bytes, media_type: str = "text/html", **more) -> Fetched:
    data = body.encode() if isinstance(body, str) else body
    return Fetched(
        **{"url": "https://a.example/p/q/r", "status": 200, "media_type": media_type}
        | {"charset": "", "body": data, **more}
    )


def pages(folder: Path, seconds: float = 60.0, command=COMMAND) -> PageReader:
    return PageReader(os.environ, folder, seconds, command)


async def test_a_page_becomes_markdown_with_whole_links(tmp_path: Path) -> None:
    page = await pages(tmp_path).page(fetched(ARTICLE))
    assert page.title == "Boats of the north"
    assert "[blue](https://a.example/p/blue?a=1&b=2)" in page.text
    assert "[the other place](https://other.example/y)" in page.text
    assert "- one brush" in page.text
    assert "| first | 12 |" in page.text
    assert "alert" not in page.text
    assert page.text.endswith("\n\nLinks:\n- [Home](https://a.example/)")
    assert page.note == ""


async def test_a_page_without_an_article_gives_all_its_words(tmp_path: Path) -> None:
    page = await pages(tmp_path).page(fetched("<p>closed on mondays"))
    assert page.text.strip() == "closed on mondays"
    page = await pages(tmp_path).page(fetched("<html><script>draw()</script></html>"))
    assert (page.text, page.note) == ("", "It holds no text that can be read without a browser.")


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "text/markdown",
        "application/json",
        "application/ld+json",
        "application/xml",
        "text/csv",
        "application/atom+xml",
    ],
)
async def test_texts_are_shown_as_they_are(tmp_path: Path, media_type: str) -> None:
    text = '{"a": "<b>https://a.example/x</b>"}\n'
    page = await pages(tmp_path, command=("/nowhere",)).page(fetched(text, media_type))
    assert (page.text, page.note) == (text, "")


@pytest.mark.parametrize(
    "media_type", ["application/pdf", "image/png", "application/octet-stream", "video/mp4", ""]
)
async def test_all_else_is_named_and_not_shown(tmp_path: Path, media_type: str) -> None:
    page = await pages(tmp_path, command=("/nowhere",)).page(fetched("secret", media_type))
    assert page.text == ""
    assert page.note.endswith("which is not shown.")
    assert media_type in page.note


async def test_of_a_page_of_links_the_links_are_told(tmp_path: Path) -> None:
    items = "".join(f"<li><a href='/n{n}'>Headline {n}</a></li>" for n in range(90))
    page = await pages(tmp_path).page(
        fetched(f"<html><body><h1>News</h1><ul>{items}</ul></body></html>")
    )
    assert "- [Headline 7](https://a.example/n7)" in page.text
    assert page.text.count("](") == 40


async def test_that_a_page_was_cut_is_told(tmp_path: Path) -> None:
    page = await pages(tmp_path).page(fetched("half", "text/plain", is_cut=True))
    assert page.note == "It is longer: only its beginning was read."


@pytest.mark.parametrize(
    ("body", "said", "text"),
    [
        ("naïve".encode(), "", "naïve"),
        ("naïve".encode(), "utf-8", "naïve"),
        ("naïve".encode()[:-3], "", "na�"),  # cut within a letter
        ("naïve".encode("latin-1"), "", "naïve"),
        ("naïve “x”".encode("cp1252"), "iso-8859-1", "naïve “x”"),
        ("Привет".encode("koi8-r"), "koi8-r", "Привет"),
        ("日本".encode("shift_jis"), "shift_jis", "日本"),
        ("日本".encode("euc-jp"), "euc-jp", "日本"),
        (b'<meta charset="windows-1251">' + "Привет".encode("cp1251"), "", "Привет"),
        (b"<meta http-equiv=x content='text/html; charset=big5'>" + "中".encode("big5"), "", "中"),
        ("x".encode("utf-16"), "utf-8", "x"),
        ("naïve".encode("utf-8-sig"), "iso-8859-1", "naïve"),
        (b"6e", "hex", "6e"),
        (b"abc", "punycode", "abc"),
        (b"\\u0041", "unicode_escape", "\\u0041"),
        (b"x", "no-such-charset", "x"),
    ],
)
def test_a_charset_is_taken_from_where_it_stands_and_no_other_codec_is(
    body: bytes, said: str, text: str
) -> None:
    decoded = body.decode(charset_of(body, said), "replace").removeprefix("\ufeff")
    assert decoded.endswith(text)


def answers(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("import time; time.sleep(600)", "timeout"),
        ("while True: pass", "timeout"),
        ("import os; os.abort()", "unreadable"),
        ("raise SystemExit(3)", "unreadable"),
        ("print('nonsense')", "unreadable"),
        ("print('[]')", "unreadable"),
        ("import sys\nwhile True: sys.stdout.write('x' * 100000)", "unreadable"),
    ],
)
async def test_a_process_that_fails_or_hangs_costs_its_page_alone(
    tmp_path: Path, script: str, kind: str
) -> None:
    seconds = 1.0 if kind == "timeout" else 60.0
    with pytest.raises(WebFault) as refused:
        await pages(tmp_path, seconds, answers(script)).page(fetched(ARTICLE))
    assert refused.value.kind == kind


async def test_the_process_sees_nothing_of_the_environment(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key")
    script = (
        "import json, os; print(json.dumps({'title': os.getcwd(), 'text': ' '.join(os.environ)}))"
    )
    page = await pages(tmp_path, command=answers(script)).page(fetched(ARTICLE))
    assert page.title == str(tmp_path)
    assert set(page.text.split()) <= {"PATH", "PYTHONPATH", "LC_CTYPE"}


HOSTILE = {
    "deep": "<div>" * 200_000 + "x",
    "many": "<p>x" * 50_000,
    "one tag": "<" * 1_000_000,
    "attributes": "<a " + "x=y " * 200_000 + ">x</a>",
    "tables": "<table><tr><td>" * 5_000 + "x",
    "entities": "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;&a;'>]><p>&b;&b;</p>" * 100,
    "outside": "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><p>&a;</p>",
    "nul": "a\x00b" * 10_000,
    "surrogates": "<p>&#xD800; &#x0; &#x110000; &#1114112;</p>",
    "link": "<a href='http://[::1'>x</a><a href='//['>y</a><p>words of the page</p>",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_page_ends_within_its_time(tmp_path: Path, name: str) -> None:
    kind, text = "", ""
    try:
        text = (await pages(tmp_path, 20.0).page(fetched(HOSTILE[name]))).text
    except WebFault as fault:
        kind = fault.kind
    assert kind in ("", "timeout", "unreadable")
    assert "root:" not in text


async def test_a_page_has_one_time_for_all_that_belongs_to_it(tmp_path: Path) -> None:
    hangs = pages(tmp_path, 60.0, answers("import time; time.sleep(600)"))
    async with site({"/": page(ARTICLE), "/gone": page("no", status="404 Not Found")}) as here:
        web = Web(fetcher(seconds=60.0), hangs, None, 1.0)
        with pytest.raises(WebFault, match="it took longer than 1 s"):
            await web.read(here.url())
        with pytest.raises(WebFault, match="it answers with 404"):
            await web.read(here.url("/gone"))
