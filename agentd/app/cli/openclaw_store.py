"""Conversations in the database of an OpenClaw agent, read and never written.

Since its version 2026.8.1 an agent keeps them in `agents/NAME/agent/openclaw-agent.sqlite`: in
`transcript_events` a row for each line of the former JSONL, as text in `event_json`, or from schema 23 on
perhaps compressed in `event_zstd` (docs.openclaw.ai/reference/session-management-compaction/store).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from agentd.app.cli.transcripts import MOST_BYTES, BroughtTranscript, Line, checked, some_of
from agentd.core.errors import InvalidRequest

_WAIT = 5.0  # seconds for OpenClaw, if it runs and writes


def read_database(path: Path) -> Iterator[BroughtTranscript]:
    """The conversations of a database, each as `chat:` and its id; none where it holds none. Raises
    InvalidRequest for one that cannot be read.
    """
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT)) as conn:
            if not _columns(conn):
                return  # of a version that kept conversations as files
            query = "SELECT DISTINCT session_id FROM transcript_events ORDER BY session_id"
            for (session,) in conn.execute(query).fetchall():
                yield _transcript(conn, path, str(session))
    except sqlite3.Error as error:
        raise InvalidRequest(
            f"{path} cannot be read as a database of OpenClaw: {error}",
            cure="stop OpenClaw and try again, or have it export its conversations",
        ) from error


def _columns(conn: sqlite3.Connection) -> set[str]:
    told = conn.execute("SELECT name FROM pragma_table_info('transcript_events')")
    return {str(name) for (name,) in told}


def _transcript(conn: sqlite3.Connection, path: Path, session: str) -> BroughtTranscript:
    lines: list[tuple[int, Line]] = []
    wrong: list[str] = []
    compressed = size = 0
    query = "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq"
    for number, (text,) in enumerate(conn.execute(query, (session,)), start=1):
        if text is None:
            compressed += 1
            continue
        size += len(text)
        if size > MOST_BYTES:
            raise InvalidRequest(
                f"{session} in {path} has more than {MOST_BYTES} bytes",
                cure="have OpenClaw shorten it",
            )
        try:
            event = json.loads(text)
        except (ValueError, RecursionError, TypeError):
            event = None
        if isinstance(event, dict):
            lines.append((number, event))
        else:
            wrong.append(f"line {number}: not a JSON object")
    taken, faults = checked(lines, wrong)
    if compressed:
        faults.append(f"{compressed} rows are compressed, which is not read")
    return BroughtTranscript(f"chat:{session}", path, taken, some_of(faults))
