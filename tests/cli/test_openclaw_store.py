"""Conversations of OpenClaw in SQLite, as its documentation describes them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentd.app.cli.other_agents import read_database
from agentd.core.errors import InvalidRequest

SCHEMA = """
    CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT NOT NULL,
                                entry_json TEXT NOT NULL, created_at INTEGER, updated_at INTEGER);
    CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
                                    created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq));
"""
ASKED = {
    "type": "message",
    "id": "a",
    "message": {"role": "user", "content": "who tunes the piano?"},
}
ANSWERED = {
    "type": "message",
    "id": "b",
    "parentId": "a",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "Ms. Ito."}]},
}
HEAD = {"type": "session", "version": 3, "id": "s"}


def write_database(path: Path, sessions: Mapping[str, Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("PRAGMA journal_mode = WAL")
        conn.executescript(SCHEMA)
        for session, events in sessions.items():
            key = f"agent:main:{session}"
            conn.execute("INSERT INTO session_nodes VALUES (?, ?, '{}', 1, 1)", (key, session))
            for seq, event in enumerate(events):
                text = event if event is None or isinstance(event, str) else json.dumps(event)
                row = (session, seq, text, 1787616000000)
                conn.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", row)


def test_each_session_is_a_transcript_under_its_id(tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    write_database(path, {"s2": [HEAD, ASKED], "s1": [HEAD, ASKED, ANSWERED]})
    before = path.read_bytes()
    first, second = read_database(path)
    assert [first.key, second.key] == ["chat:s1", "chat:s2"]
    assert [(line["role"], line["content"]) for line in first.lines] == [
        ("user", "who tunes the piano?"),
        ("assistant", [{"type": "text", "text": "Ms. Ito."}]),
    ]
    assert len(second.lines) == 1
    assert first.faults == second.faults == ()
    assert path.read_bytes() == before


def test_what_another_process_has_just_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    write_database(path, {"s": [HEAD, ASKED]})
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        row = ("s", 9, json.dumps(ANSWERED), 1)
        writer.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", row)
        assert Path(f"{path}-wal").stat().st_size
        [transcript] = read_database(path)
    assert len(transcript.lines) == 2


def test_rows_that_cannot_be_read_are_named_and_the_others_taken(tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    write_database(path, {"s": [HEAD, ASKED, None, "nonsense", "[1]", None]})
    [transcript] = read_database(path)
    assert len(transcript.lines) == 1
    assert transcript.faults == (
        "line 4: not a JSON object",
        "line 5: not a JSON object",
        "2 rows are compressed, which is not read",
    )


def test_a_database_without_conversations_holds_none(tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE auth (id TEXT)")
    assert list(read_database(path)) == []


@pytest.mark.parametrize(
    "content", [b"SQLite format 3", b"words", b"SQLite format 3\0" + b"x" * 9000]
)
def test_what_is_no_database_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    path.write_bytes(content)
    with pytest.raises(InvalidRequest, match=r"openclaw-agent\.sqlite cannot be read"):
        list(read_database(path))


def test_one_whose_table_is_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE transcript_events (call_id TEXT, text TEXT)")
    with pytest.raises(InvalidRequest, match="no such column"):
        list(read_database(path))
