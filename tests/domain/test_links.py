"""An address counts where it stands as a whole in words of the owner or in what was read on the
web.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentd.core.links import KnownText, is_known, openable_texts
from agentd.core.message import (
    BY_AGENT,
    BY_OTHERS,
    BY_OWNER,
    Block,
    Text,
    TextSource,
    ToolResult,
    ToolUse,
    Writer,
)
from agentd.core.transcript import Row, RowRole

URL = "https://a.example/x?b=1"
TAINTED = TextSource(Writer.AGENT, tainted=True)


@pytest.mark.parametrize(
    "text",
    [
        *(URL, f"read {URL}", f"{URL} please", f"Is it {URL}?", f"({URL})", f"<{URL}>", f'"{URL}"'),
        *(f"[words]({URL})", f"[words](<{URL}>).", f"**{URL}**", f"{URL}, {URL}.", f"a\n{URL}\nb"),
        *(f"[x]({URL})[y](https://b.example)", f"“{URL}”", f"| {URL} |", f"<loc>{URL}</loc>"),
        *(f'{{"url":"{URL}"}}', f"{URL}more and {URL}", f"'{URL}', '{URL}y'"),
    ],
)
def test_it_stands_there(text: str) -> None:
    assert is_known(URL, [KnownText("nothing"), KnownText(text)])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "https://a.example/x",
            URL.upper(),
            f"{URL}2",
            f"{URL}&c=2",
            f"{URL}/more",
            f"{URL}.x",
        ),
        *(
            f"{URL}%20x",
            f"x{URL}",
            "https://a.example/x?b= 1",
            f"{URL}-",
            f"{URL}#part",
            f"{URL}@b",
        ),
        *(URL.replace("/", "\\/"), f"{URL}?c", f"{URL}:80"),
    ],
)
def test_it_does_not_stand_there(text: str) -> None:
    assert not is_known(URL, [KnownText(text)])


def test_nothing_stands_nowhere() -> None:
    assert not is_known("", [KnownText("")])
    assert not is_known(URL, [])


@pytest.mark.parametrize(
    "asked",
    [
        "https://e.example/?d=canary",
        "e.example/?d=canary",
        "E.example d CANARY",
        "e example?d%3Dcanary",
    ],
)
def test_what_a_search_gives_back_of_its_own_question_does_not_count(asked: str) -> None:
    url = "https://e.example/?d=canary"
    assert is_known(url, [KnownText(f"found {url}")])
    assert not is_known(url, [KnownText(f"found {url}", asked)])
    assert is_known(url, [KnownText(f"found {url}", asked), KnownText(url)])
    assert is_known("https://e.example/news", [KnownText("https://e.example/news", asked)])


def row(role: RowRole, *blocks: Block, source: TextSource) -> Row:
    return Row(1, role, blocks, datetime(2026, 1, 1, tzinfo=UTC), source=source)


def said(text: str, source: TextSource = BY_OWNER, quoted=()) -> Row:
    return row(RowRole.USER, Text(text, quoted), source=source)


def called(name: str, answer: str, *, is_error: bool = False, **given: str) -> tuple[Row, Row]:
    use, result = ToolUse("c1", name, given), ToolResult("c1", answer, is_error)
    return (
        row(RowRole.ASSISTANT, use, source=BY_AGENT),
        row(RowRole.USER, result, source=TAINTED),
    )


def is_open(*rows: Row) -> bool:
    return is_known(URL, openable_texts(rows))


def test_words_of_the_owner_and_what_was_read_on_the_web_count() -> None:
    assert is_open(said(f"read {URL}"))
    assert is_open(said("what a beat of his asks: " + URL, BY_AGENT))
    assert is_open(*called("web_fetch", f"[x]({URL})", url="https://b.example/"))
    assert is_open(*called("web_search", f"found {URL}", query="something"))
    assert is_open(
        said(f"{URL} and what was attached", TextSource(Writer.OWNER, tainted=True), ((31, 40),))
    )


def test_words_of_others_do_not() -> None:
    attached = f"read this\n{URL}\n"
    assert not is_open(
        said(attached, TextSource(Writer.OWNER, tainted=True), ((9, len(attached)),))
    )
    assert not is_open(said(URL, BY_OTHERS))
    assert not is_open(said(URL, TAINTED))
    assert not is_open(row(RowRole.ASSISTANT, Text(URL), source=BY_AGENT))
    assert not is_open(row(RowRole.NOTICE, Text(URL), source=BY_AGENT))
    assert not is_open(*called("memory_read", URL, path="mail.md"))
    assert not is_open(*called("mail.read", URL))
    # a refusal names what it refuses
    assert not is_open(*called("web_fetch", f"not opened: {URL}", is_error=True, url=URL))
    assert not is_open(*called("web_search", f"found {URL}", query=f"find {URL}"))
