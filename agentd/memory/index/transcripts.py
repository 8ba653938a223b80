"""Transcripts as virtual files `sessions/KEY.jsonl`, and as chunks. Pure.

Line n of such a file is row number n, whatever rows retention has erased before it, so references
to lines stay valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from zoneinfo import ZoneInfo

from agentd.core.search import Chunk, Source, scope_of
from agentd.core.transcript import Row, RowRole, export_row, opens_turn
from agentd.core.turn import SessionKey
from agentd.memory.index.chunking import turns

_FOLDER, _SUFFIX = "sessions/", ".jsonl"


def path_of(session: SessionKey) -> str:
    """Return the path of a session's virtual transcript file."""
    return f"{_FOLDER}{session}{_SUFFIX}"


def session_at(path: str) -> SessionKey | None:
    """Return the session whose transcript has this path; None for any other path."""
    if not path.startswith(_FOLDER) or not path.endswith(_SUFFIX):
        return None
    return SessionKey(path.removeprefix(_FOLDER).removesuffix(_SUFFIX)) or None


def as_lines(rows: Iterable[Row]) -> str:
    """Return the rows as JSON, one a line. In place of erased rows there is a line that says which
    are gone, followed by blank lines.
    """
    lines: list[str] = []
    for row in rows:
        if gone := row.seq - 1 - len(lines):
            said = {"erased": {"first": len(lines) + 1, "last": row.seq - 1}}
            lines += [json.dumps(said), *[""] * (gone - 1)]
        lines.append(json.dumps(export_row(row), ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def chunks_of_rows(session: SessionKey, rows: Iterable[Row], zone: ZoneInfo) -> tuple[Chunk, ...]:
    """Return the chunks of what was said in the rows. Each message is cut by itself, so that
    indexing rows one by one or all at once gives the same chunks.
    """
    path = path_of(session)
    scope = scope_of(session)
    return tuple(
        Chunk(
            path,
            row.seq,
            row.seq,
            piece.text,
            Source.SESSIONS,
            scope,
            row.at.astimezone(zone).date(),
            piece.speaker,
        )
        for row in rows
        for piece in turns.pieces(row)
    )


def finished_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows without the last turn, if it has no final answer yet."""
    if not rows or rows[-1].turn_id is None or not _is_open(rows[-1]):
        return rows
    return rows[: last_turn(rows)]


def last_turn(rows: Sequence[Row]) -> int:
    """Return the index of the row that begins the last turn; 0 if none does."""
    starts = (n for n in range(len(rows) - 1, -1, -1) if opens_turn(rows[n]))
    return next(starts, 0)


def _is_open(row: Row) -> bool:
    if row.role is RowRole.ASSISTANT:
        return bool(row.as_message().tool_uses)
    return row.role is RowRole.USER
