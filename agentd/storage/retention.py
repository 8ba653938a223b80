"""Erases rows that were kept long enough.

A row may be erased when it is old, has left its session's context, and nothing more is to be saved
from it. Turns are erased whole: the rows from one that opens a turn up to the next such row are a
span, which goes completely or not at all. Notices and summaries outside of turns are spans of their
own. The remaining rows keep their numbers.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct

from agentd.core.retention import AgedRows
from agentd.core.transcript import Coverage, RowRole
from agentd.core.turn import SessionKey
from agentd.storage.codec import maybe_moment, stamp
from agentd.storage.sqlite import Database
from agentd.storage.transcript import retitle

PAGE = 400  # rows or turns read by one transaction

_Span = list[sqlite3.Row]

_UNCOVERED = "not_covered"

_CUT = "SELECT id, key FROM sessions WHERE context_from > 1 ORDER BY id"
_ROWS = """
SELECT r.seq, r.turn_id, r.role, r.at, r.opens_turn, t.ended_at
FROM rows r JOIN sessions s ON s.id = r.session_id LEFT JOIN turns t ON t.id = r.turn_id
WHERE r.session_id = ? AND r.seq >= ? AND r.seq < s.context_from ORDER BY r.seq LIMIT ?
"""
_GOES_ON = """
SELECT r.opens_turn FROM rows r JOIN sessions s ON s.id = r.session_id
WHERE r.session_id = ? AND r.seq >= s.context_from AND r.role IN ('user', 'assistant')
ORDER BY r.seq LIMIT 1
"""
_COVERAGES = """
SELECT first, last, ok, reason FROM coverages WHERE session_id = ? AND last >= ? AND first <= ?
"""
_DELETE_ROWS = "DELETE FROM rows WHERE session_id = ? AND seq IN (SELECT value FROM json_each(?))"
_DELETE_TURNS = """
DELETE FROM turns WHERE id IN (SELECT value FROM json_each(?))
    AND NOT EXISTS (SELECT 1 FROM rows WHERE rows.turn_id = turns.id)
"""
# A flush without a later coverage may have been cut by a crash; its record is needed to resume it.
_SILENT = """
SELECT t.id FROM turns t
WHERE t.id BETWEEN ? AND ? AND t.origin != 'user' AND t.ended_at < ? AND (t.origin != 'flush'
    OR EXISTS (SELECT 1 FROM coverages c WHERE c.session_id = t.session_id AND c.at >= t.ended_at))
"""


class _Page(Struct, frozen=True):
    """The result of looking at some rows: the spans that may be erased, how many rows must stay for
    each reason, and the row to go on with (None at the end).
    """

    removable: tuple[_Span, ...]
    kept: Mapping[str, int]
    next: int | None


class SqliteRetention:
    """Finds old rows of the state database page by page; erases each page in one transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def newest(self, now: datetime) -> datetime | None:
        """Return when the newest row that is not later than `now` was stored; None if there is
        none. Raises StorageError.
        """
        query = "SELECT max(at) FROM rows WHERE at <= ?"
        found = await self._db.read(lambda conn: conn.execute(query, (stamp(now),)).fetchone())
        return maybe_moment(found[0])

    async def survey(self, before: datetime) -> AgedRows:
        """Return what is older than `before` and may be erased, and how many rows must stay, by
        reason. Raises StorageError.
        """
        found: dict[SessionKey, int] = {}
        kept: Counter[str] = Counter()
        for number, key in await self._db.read(_cut_sessions):
            first: int | None = 1
            while first is not None:
                page = await self._db.read(partial(_look, session=number, first=first, at=before))
                if page.removable:
                    found[key] = found.get(key, 0) + sum(map(len, page.removable))
                kept.update(page.kept)
                first = page.next
        silent = 0
        for start in await self._db.read(_turn_pages):
            silent += len(await self._db.read(partial(_silent, start=start, at=before)))
        return AgedRows(tuple(found), sum(found.values()), silent, dict(kept))

    async def remove(self, before: datetime, sessions: Sequence[SessionKey]) -> None:
        """Erase what may be erased of these sessions, and the records of all old silent turns.

        When this returns, no byte of it is left in the database's files. After a crash or an error,
        rows that are left are erased by the next call, and bytes when the database is next opened.
        Raises StorageError.
        """
        async with self._db.erasing():
            for number, key in await self._db.read(_cut_sessions):
                first: int | None = 1 if key in sessions else None
                while first is not None:
                    step = partial(_remove, session=number, first=first, at=before)
                    first = await self._db.write(step)
            for start in await self._db.read(_turn_pages):
                await self._db.write(partial(_remove_silent, start=start, at=before))


def _cut_sessions(conn: sqlite3.Connection) -> tuple[tuple[int, SessionKey], ...]:
    return tuple((row["id"], SessionKey(row["key"])) for row in conn.execute(_CUT))


def _look(conn: sqlite3.Connection, session: int, first: int, at: datetime) -> _Page:
    rows = conn.execute(_ROWS, (session, first, PAGE)).fetchall()
    if not rows:
        return _Page((), {}, None)
    spans, last = _spans(rows)
    following: int | None = None
    if len(rows) == PAGE:
        # The last span may continue on the next page; one that fills the page is judged in parts.
        is_whole = not last or last[0]["seq"] == rows[0]["seq"]
        following = rows[-1]["seq"] + 1 if is_whole else last[0]["seq"]
        spans = [span for span in spans if span[0]["seq"] < following]
    elif (next_ := conn.execute(_GOES_ON, (session,)).fetchone()) and not next_["opens_turn"]:
        spans = [span for span in spans if span is not last]  # the context begins within this turn
    coverages = [
        Coverage(c["first"], c["last"], bool(c["ok"]), c["reason"])
        for c in conn.execute(_COVERAGES, (session, rows[0]["seq"], rows[-1]["seq"]))
    ]
    removable = []
    kept: Counter[str] = Counter()
    for span in spans:
        if not _is_old(span, stamp(at)):
            continue
        if reason := _why_unsaved(span, coverages):
            kept[reason] += len(span)
        else:
            removable.append(span)
    return _Page(tuple(removable), kept, following)


def _spans(rows: Sequence[sqlite3.Row]) -> tuple[list[_Span], _Span]:
    """Return the spans, and the last one of a turn, which may continue after these rows."""
    spans: list[_Span] = []
    last: _Span = []
    for row in rows:
        if row["turn_id"] is None and not RowRole(row["role"]).is_spoken:
            spans.append([row])
        elif last and not row["opens_turn"]:
            last.append(row)
        else:
            last = [row]
            spans.append(last)
    return spans, last


def _is_old(span: Sequence[sqlite3.Row], before: str) -> bool:
    return all(
        row["at"] < before and (row["turn_id"] is None or row["ended_at"] is not None)
        for row in span
    )


def _why_unsaved(span: Sequence[sqlite3.Row], coverages: Sequence[Coverage]) -> str:
    """Return why the span must stay; "" if it need not. Notices and summaries are agentd's own
    words and need not be saved.
    """
    for seq in (row["seq"] for row in span if RowRole(row["role"]).is_spoken):
        covering = [c for c in coverages if c.first <= seq <= c.last]
        if not any(c.is_settled for c in covering):
            return covering[-1].reason if covering else _UNCOVERED
    return ""


def _remove(conn: sqlite3.Connection, session: int, first: int, at: datetime) -> int | None:
    page = _look(conn, session, first, at)
    gone = [row for span in page.removable for row in span]
    conn.execute(_DELETE_ROWS, (session, json.dumps([row["seq"] for row in gone])))
    turns = {row["turn_id"] for row in gone} - {None}
    conn.execute(_DELETE_TURNS, (json.dumps(sorted(turns)),))
    if any(row["opens_turn"] for row in gone):
        retitle(conn, session)
    return page.next


def _turn_pages(conn: sqlite3.Connection) -> range:
    (last,) = conn.execute("SELECT coalesce(max(id), 0) FROM turns").fetchone()
    return range(1, last + 1, PAGE)


def _silent(conn: sqlite3.Connection, start: int, at: datetime) -> list[int]:
    found = conn.execute(_SILENT, (start, start + PAGE - 1, stamp(at)))
    return [row["id"] for row in found]


def _remove_silent(conn: sqlite3.Connection, start: int, at: datetime) -> None:
    conn.execute(_DELETE_TURNS, (json.dumps(_silent(conn, start, at)),))
