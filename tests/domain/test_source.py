"""Where text comes from, as rows carry it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from agentd.core.message import (
    BY_AGENT,
    BY_OTHERS,
    BY_OWNER,
    Image,
    Text,
    TextSource,
    ToolResult,
    Writer,
)
from agentd.core.transcript import NewRow, Row, RowRole, export_row
from agentd.core.turn import MAIN, Origin, SessionKey, TurnRequest

AT = datetime(2026, 11, 21, tzinfo=UTC)
ALL = [TextSource(writer, tainted) for writer in Writer for tainted in (False, True)]
WORDS, RESULT = (Text("hi"),), (ToolResult("c", "hi"),)


@pytest.mark.parametrize("source", ALL, ids=str)
def test_a_source_is_read_as_it_was_written(source):
    assert TextSource.parse(str(source)) == source


@pytest.mark.parametrize("text", ["", "nobody", "owner ", "owner clean", "owner tainted "])
def test_anything_else_is_no_source(text):
    with pytest.raises(ValueError, match=r"source|Writer"):
        TextSource.parse(text)


def test_the_owners_words_are_his_own_whatever_came_with_them():
    assert [str(source) for source in ALL if source.is_owners_own] == ["owner", "owner tainted"]


@pytest.mark.parametrize("block", [Text("see x", ((4, 5),)), Image("image/png", "0" * 64, 9)])
def test_what_came_with_the_owners_words_taints_them(block):
    for row in (
        NewRow(RowRole.USER, (block,)),
        NewRow(RowRole.USER, (block,), source=BY_OWNER),
        NewRow(RowRole.USER, (block,)).stored(1, AT, None),
        Row(1, RowRole.USER, (*WORDS, block), AT, source=BY_OWNER),
    ):
        assert row.source == TextSource(Writer.OWNER, tainted=True)
    assert NewRow(RowRole.USER, (block,), source=BY_OTHERS).source == BY_OTHERS


@pytest.mark.parametrize(
    ("role", "blocks", "source"),
    [
        (RowRole.USER, WORDS, BY_OWNER),
        (RowRole.USER, RESULT, BY_AGENT),
        (RowRole.USER, (*RESULT, *WORDS), BY_AGENT),
        (RowRole.ASSISTANT, WORDS, BY_AGENT),
        (RowRole.SUMMARY, WORDS, BY_AGENT),
        (RowRole.NOTICE, WORDS, BY_AGENT),
    ],
)
def test_a_row_of_which_nothing_is_said_has_the_source_of_its_role(role, blocks, source):
    assert NewRow(role, blocks).source == source
    assert NewRow(role, blocks).stored(1, AT, None).source == source
    assert Row(1, role, blocks, AT).source == source


def test_a_source_that_was_named_stays_whatever_else_changes():
    row = NewRow(RowRole.USER, WORDS, source=BY_OTHERS).stored(1, AT, 7)
    assert replace(row, blocks=RESULT).source == BY_OTHERS


def test_an_export_says_which_rows_are_tainted():
    clean = Row(1, RowRole.USER, WORDS, AT)
    assert "tainted" not in export_row(clean)
    others = export_row(replace(clean, source=BY_OTHERS))
    assert (others["tainted"], "writer" in others) == (True, False)
    own = export_row(replace(clean, source=TextSource(Writer.OWNER, tainted=True)))
    assert (own["tainted"], own["writer"]) == (True, "owner")


@pytest.mark.parametrize(
    ("session", "origin", "source"),
    [
        (MAIN, Origin.USER, BY_OWNER),
        ("chat:one", Origin.USER, BY_OWNER),
        ("group:club", Origin.USER, BY_OTHERS),
        ("isolated:task", Origin.USER, BY_OTHERS),
        (MAIN, Origin.FLUSH, BY_AGENT),
        ("chat:one", Origin.JOB, BY_AGENT),
    ],
)
def test_a_message_is_of_whoever_speaks_in_the_session(session, origin, source):
    assert TurnRequest(SessionKey(session), "hi", "m", origin).source == source
