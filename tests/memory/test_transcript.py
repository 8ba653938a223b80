from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.memory import Source
from agentd.domain.message import Text, ToolResult, ToolUse
from agentd.domain.transcript import Row, RowRole
from agentd.domain.turn import SessionKey
from agentd.memory.transcript import as_lines, chunks_of_rows, finished, path_of, session_at

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


def test_only_what_was_said_is_kept_with_its_own_lines(row):
    rows = [
        row(1, "notice", "restarted"),
        row(2, "user", "where is the key?"),
        row(3, "assistant", (Text("Looking."), ToolUse("c", "memory_read", {}))),
        row(4, "user", (ToolResult("c", "under the mat"),)),
        row(5, "assistant", "Under the mat."),
        row(6, "summary", "they talked"),
    ]
    (chunk,) = chunks_of_rows(MAIN, rows, UTC_ZONE)
    assert (
        chunk.text == "[user] where is the key?\n[assistant] Looking.\n[assistant] Under the mat."
    )
    assert (chunk.path, chunk.start_line, chunk.end_line) == ("sessions/main.jsonl", 2, 5)
    assert (chunk.source, chunk.owner_only) == (Source.SESSIONS, True)
    assert str(chunk.date) == "2026-11-21"


@given(
    st.lists(st.tuples(st.booleans(), st.text("ab \n", max_size=4000)), min_size=1, max_size=25),
    st.data(),
)
def test_chunks_are_small_lose_no_word_and_do_not_depend_on_when_they_are_made(said, data):
    rows = [
        Row(n, RowRole.USER if is_user else RowRole.ASSISTANT, (Text(text),), NOON)
        for n, (is_user, text) in enumerate(said, 1)
    ]
    chunks = chunks_of_rows(MAIN, rows, UTC_ZONE)
    assert all(len(c.text) <= 1501 for c in chunks)
    assert all(c.end_line - c.start_line < 10 for c in chunks)
    words = "".join(c.text.replace("[user]", "").replace("[assistant]", "") for c in chunks)
    assert "".join(words.split()) == "".join("".join(text for _, text in said).split())
    starts = [n for n, r in enumerate(rows) if r.role is RowRole.USER]
    cut = data.draw(st.sampled_from([0, *starts]))
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
    assert finished(done) == done
    assert finished(live) == done
    assert finished([*live, *tool]) == done
    whole = [*live, *tool, row(6, "assistant", "d", 2)]
    assert finished(whole) == whole
    failed = [*live, row(4, "notice", "failed", 2)]
    assert finished(failed) == failed
    imported = [row(1, "user", "a")]
    assert finished(imported) == imported
