from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.message import Text, ToolResult, ToolUse
from agentd.core.search import Source
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import SessionKey
from agentd.memory.index.chunking.piece import tokens_in
from agentd.memory.index.transcripts import (
    as_lines,
    chunks_of_rows,
    finished_rows,
    path_of,
    session_at,
)

UTC_ZONE = ZoneInfo("UTC")
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MAIN = SessionKey("main")


def spoken(row, *texts):
    return [row(n, "user" if n % 2 else "assistant", t) for n, t in enumerate(texts, 1)]


def test_line_n_of_the_virtual_file_is_row_n(row):
    rows = spoken(row, "one\ntwo", "drei\u2028")
    lines = as_lines(rows).split("\n")
    assert [json.loads(line)["seq"] for line in lines[:-1]] == [1, 2]
    assert json.loads(lines[0]) == {
        "role": "user",
        "content": [{"type": "text", "text": "one\ntwo"}],
        "at": "2026-11-21T12:00:00+00:00",
        "seq": 1,
    }


def test_line_n_stays_row_n_where_rows_are_gone(row):
    rows = [row(n, "user", f"words {n}") for n in (3, 4, 6)]
    lines = as_lines(rows).split("\n")
    assert json.loads(lines[0]) == {"erased": {"first": 1, "last": 2}}
    assert lines[1] == ""
    assert json.loads(lines[4]) == {"erased": {"first": 5, "last": 5}}
    assert {n: json.loads(lines[n - 1])["seq"] for n in (3, 4, 6)} == {3: 3, 4: 4, 6: 6}
    assert len(lines) == 7


def test_only_what_was_said_is_kept_with_its_own_lines(row):
    rows = [
        row(1, "notice", "restarted"),
        row(2, "user", "where is the key?"),
        row(3, "assistant", (Text("Looking."), ToolUse("c", "memory_read", {}))),
        row(4, "user", (ToolResult("c", "under the mat"),)),
        row(5, "assistant", "Under the mat."),
        row(6, "summary", "they talked"),
    ]
    chunks = chunks_of_rows(MAIN, rows, UTC_ZONE)
    assert [(c.start_line, c.end_line, c.speaker, c.text) for c in chunks] == [
        (2, 2, "user", "where is the key?"),
        (3, 3, "assistant", "Looking."),
        (5, 5, "assistant", "Under the mat."),
    ]
    assert {c.path for c in chunks} == {"sessions/main.jsonl"}
    assert {(c.source, c.scope, str(c.date)) for c in chunks} == {
        (Source.SESSIONS, "main", "2026-11-21")
    }


def test_an_imported_message_tells_its_author(row):
    rows = [
        row(1, "user", "Ann Berg: Hi there."),
        row(2, "assistant", "User: not a name"),
        row(3, "user", "Bo: I typed this myself.", 7),
        row(4, "user", "[user]: x"),
    ]
    chunks = chunks_of_rows(MAIN, rows, UTC_ZONE)
    assert [c.speaker for c in chunks] == ["Ann Berg", "assistant", "user", "user"]
    assert [c.shown for c in chunks] == [
        "Ann Berg: Hi there.",
        "[assistant] User: not a name",
        "[user] Bo: I typed this myself.",
        "[user] [user]: x",
    ]


@given(
    st.lists(
        st.tuples(st.booleans(), st.text("ab \n[:漢", max_size=4000)), min_size=1, max_size=25
    ),
    st.data(),
)
def test_chunks_are_small_lose_no_word_and_do_not_depend_on_when_they_are_made(said, data):
    rows = [
        Row(n, RowRole.USER if is_user else RowRole.ASSISTANT, (Text(text),), NOON)
        for n, (is_user, text) in enumerate(said, 1)
    ]
    chunks = chunks_of_rows(MAIN, rows, UTC_ZONE)
    assert all(tokens_in(c.text) <= 200 and c.start_line == c.end_line for c in chunks)
    assert not any("\n[" in c.shown for c in chunks)
    words = "".join(c.text for c in chunks)
    assert "".join(words.split()) == "".join("".join(text for _, text in said).split())
    cut = data.draw(st.integers(0, len(rows)))
    assert chunks == (
        *chunks_of_rows(MAIN, rows[:cut], UTC_ZONE),
        *chunks_of_rows(MAIN, rows[cut:], UTC_ZONE),
    )


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("sessions/main.jsonl", "main"),
        ("sessions/group:a.jsonl", "group:a"),
        ("sessions/.jsonl", None),
        ("memory/a.md", None),
        ("sessions/a.md", None),
    ],
)
def test_which_session_a_path_means(path, key):
    assert session_at(path) == key
    if key:
        assert path_of(SessionKey(key)) == path


def test_a_live_turn_without_its_answer_is_not_finished(row):
    done = [row(1, "user", "a", 1), row(2, "assistant", "b", 1)]
    asking = (Text("look"), ToolUse("c", "memory_read", {}))
    tool = [row(4, "assistant", asking, 2), row(5, "user", (ToolResult("c", "x"),), 2)]
    live = [*done, row(3, "user", "c", 2)]
    assert finished_rows(done) == done
    assert finished_rows(live) == done
    assert finished_rows([*live, *tool]) == done
    whole = [*live, *tool, row(6, "assistant", "d", 2)]
    assert finished_rows(whole) == whole
    failed = [*live, row(4, "notice", "failed", 2)]
    assert finished_rows(failed) == failed
    imported = [row(1, "user", "a")]
    assert finished_rows(imported) == imported
