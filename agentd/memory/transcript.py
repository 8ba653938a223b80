"""Transcripts as virtual files `sessions/KEY.jsonl`, and cut into chunks. Pure.

Line n of such a file is the row with the number n.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from zoneinfo import ZoneInfo

from agentd.domain.memory import Chunk, Source
from agentd.domain.message import ToolResult
from agentd.domain.transcript import Row, RowRole, export_row
from agentd.domain.turn import Kind, SessionKey, kind_of

_ROWS = 10  # at most in one chunk
_CHARS = 1_500
_FOLDER, _SUFFIX = "sessions/", ".jsonl"


def path_of(session: SessionKey) -> str:
    """Where a session's transcript is read."""
    return f"{_FOLDER}{session}{_SUFFIX}"


def session_at(path: str) -> SessionKey | None:
    """The session whose transcript is read there; None for any other path."""
    if not path.startswith(_FOLDER) or not path.endswith(_SUFFIX):
        return None
    return SessionKey(path.removeprefix(_FOLDER).removesuffix(_SUFFIX)) or None


def as_lines(rows: Iterable[Row]) -> str:
    """The rows as JSON, one a line."""
    return "".join(json.dumps(export_row(row), ensure_ascii=False) + "\n" for row in rows)


def chunks_of_rows(session: SessionKey, rows: Sequence[Row], zone: ZoneInfo) -> tuple[Chunk, ...]:
    """What was said, as `[role] words`. A chunk never spans two turns, so that adding turns one by
    one and all at once come to the same chunks.
    """
    path = path_of(session)
    owner_only = kind_of(session) is Kind.MAIN
    return tuple(
        Chunk(
            path,
            held[0][0].seq,
            held[-1][0].seq,
            "\n".join(text for _, text in held),
            Source.SESSIONS,
            owner_only,
            held[0][0].at.astimezone(zone).date(),
        )
        for held in _packed(rows)
    )


def finished(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows without a live turn at the end that has no last answer yet."""
    if not rows or rows[-1].turn_id is None or not _is_open(rows[-1]):
        return rows
    return rows[: last_turn(rows)]


def last_turn(rows: Sequence[Row]) -> int:
    """Where the last turn begins among the rows (0 if nowhere)."""
    starts = (n for n in range(len(rows) - 1, -1, -1) if _begins_turn(rows[n]))
    return next(starts, 0)


def _packed(rows: Sequence[Row]) -> Iterator[list[tuple[Row, str]]]:
    held: list[tuple[Row, str]] = []
    size = 0
    for row in rows:
        if held and _begins_turn(row):
            yield held
            held, size = [], 0
        for text in _said(row):
            if held and (_is_long(held, row) or size + len(text) > _CHARS):
                yield held
                held, size = [], 0
            held.append((row, text))
            size += len(text) + 1
    if held:
        yield held


def _is_long(held: Sequence[tuple[Row, str]], row: Row) -> bool:
    """Whether the row is too far from the first one; rows in between may have had no words."""
    return len(held) == _ROWS or row.seq - held[0][0].seq >= _ROWS


def _said(row: Row) -> Iterator[str]:
    if row.role not in {RowRole.USER, RowRole.ASSISTANT}:
        return
    text = row.text.strip().replace("\n[", "\n [")  # no line of it looks like another speaker's
    room = _CHARS - len(row.role) - 3
    while text:
        cut = len(text) if len(text) <= room else text.rfind(" ", room // 2, room) + 1 or room
        yield f"[{row.role}] {text[:cut].rstrip()}"
        text = text[cut:].lstrip()


def _begins_turn(row: Row) -> bool:
    return row.role is RowRole.USER and not any(isinstance(b, ToolResult) for b in row.blocks)


def _is_open(row: Row) -> bool:
    if row.role is RowRole.ASSISTANT:
        return bool(row.as_message().tool_uses)
    return row.role is RowRole.USER
