"""Chunks that stand next to each other, shown as one."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agentd.core.message import Text
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import SessionKey
from agentd.memory.index.chunks import chunker_of, chunks_of_note
from agentd.memory.index.search.hits import join_chunks
from agentd.memory.index.transcripts import chunks_of_rows
from agentd.memory.settings import IndexSettings

LONG = " ".join(f"This is sentence number {n} of one very long line." for n in range(60))


@pytest.mark.parametrize(
    "text",
    [
        (
            "# Boat\n\nThe first paragraph about teak.\n\n\n- an entry with several words in "
            "it\n- another one of them"
        ),
        f"Before it.\n\n{LONG}\n\nAfter it.",
        f"- {LONG}\n  and below",
    ],
)
def test_neighbours_of_a_note_are_its_lines_again(text):
    chunks = chunks_of_note("a.md", text, scope="")
    assert len(chunks) > 1
    whole = join_chunks(chunks)
    assert (whole.start_line, whole.end_line) == (1, len(text.split("\n")))
    assert whole.text == text


def test_lines_that_two_chunks_hold_are_shown_once():
    text = "\n".join(f"line {n:03} with some words in it" for n in range(60))
    chunker = chunker_of(IndexSettings(chunker="tokens", chunk_size=100))
    chunks = chunks_of_note("a.md", text, scope="", chunker=chunker)
    assert len(chunks) > 3
    assert join_chunks(chunks).text == text


def test_what_was_said_stands_behind_who_said_it():
    at = datetime(2026, 11, 21, tzinfo=UTC)
    rows = [
        Row(1, RowRole.USER, (Text("Where is the key?"),), at, turn_id=1),
        Row(2, RowRole.ASSISTANT, (Text("Under the mat.\n[user] so I say"),), at, turn_id=1),
        Row(3, RowRole.USER, (Text("Ann: Thanks."),), at),
    ]
    whole = join_chunks(chunks_of_rows(SessionKey("main"), rows, ZoneInfo("UTC")))
    assert whole.text == (
        "[user] Where is the key?\n[assistant] Under the mat.\n [user] so I say\nAnn: Thanks."
    )
    assert (whole.start_line, whole.end_line) == (1, 3)
