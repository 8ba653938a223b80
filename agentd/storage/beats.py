"""The BeatStore in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from agentd.core.alert import Alert
from agentd.core.beat import (
    Beat,
    BeatFinding,
    HeartbeatState,
    ItemState,
    Outcome,
    Reason,
    main_finding,
    text_of,
)
from agentd.core.errors import NotFound
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.text import well_formed
from agentd.core.watch import WatchedCall, WatchedEntry, is_same
from agentd.storage.codec import UnreadableRows, dumps, maybe_moment, maybe_stamp, moment, stamp
from agentd.storage.outbox import repeated_by, store_alert
from agentd.storage.sqlite import Database

_BEGIN = """
INSERT INTO beats (at, due, file_hash, forced, entries) VALUES (?, ?, ?, ?, ?) RETURNING id
"""
_END = """
UPDATE beats SET outcome = ?, reason = ?, text = ?, tokens = ?, cost_usd = ?, repeats = ?
WHERE id = ? AND outcome IS NULL
RETURNING *, (SELECT at FROM alerts WHERE alerts.id = repeats) AS repeats_at
"""
_SKIP = """
INSERT INTO beats (at, due, outcome, reason, file_hash) VALUES (?, ?, 'skipped', ?, ?)
RETURNING *, NULL AS repeats_at
"""
_INTERRUPT = "UPDATE beats SET outcome = 'failed', reason = 'interrupted' WHERE outcome IS NULL"
_NEWEST = """
SELECT *, (SELECT at FROM alerts WHERE alerts.id = repeats) AS repeats_at
FROM beats WHERE outcome IS NOT NULL ORDER BY id DESC LIMIT ?
"""
_DONE = """
INSERT INTO items (hash, first_seen, last_done) VALUES (:item, :now, :now)
ON CONFLICT (hash) DO UPDATE SET last_done = excluded.last_done
"""
_WATCH = """
INSERT OR REPLACE INTO watches (entry, calls, looked_at, told, told_at, failing_since, failure)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""


class SqliteBeats:
    """The BeatStore of the state database. Secrets that `redactor` finds are not stored."""

    def __init__(self, db: Database, clock: Clock, redactor: Redactor | None = None) -> None:
        self._db = db
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._unreadable = UnreadableRows("beat", "no more than the record of it is lost")
        self._unseen = UnreadableRows("watched entry", "the next beat looks at it anew", "entry")

    def problems(self) -> tuple[Problem, ...]:
        """The beats and watched entries whose rows are unreadable."""
        return (*self._unreadable.problems(), *self._unseen.problems())

    async def heartbeat(self) -> HeartbeatState:
        """See BeatStore."""

        def find(conn: sqlite3.Connection) -> HeartbeatState:
            row = conn.execute("SELECT next_due, paused_until, paused_at FROM heartbeat").fetchone()
            return HeartbeatState(*map(maybe_moment, row))

        return await self._db.read(find)

    async def schedule(self, next_due: datetime | None) -> None:
        """See BeatStore."""
        await self._db.write(lambda conn: _schedule(conn, next_due))

    async def pause(self, until: datetime | None) -> None:
        """See BeatStore."""
        times = (maybe_stamp(until), stamp(self._clock.now()) if until else None)
        await self._db.execute("UPDATE heartbeat SET paused_until = ?, paused_at = ?", times)

    async def begin_beat(
        self,
        due: datetime | None,
        next_due: datetime | None,
        file_hash: str,
        *,
        listed: Collection[str] | None = None,
        entries: Sequence[str] = (),
        forced: bool = False,
    ) -> int:
        """See BeatStore."""
        now = stamp(self._clock.now())
        values = (now, maybe_stamp(due), file_hash, forced, dumps(list(entries)))

        def begin(conn: sqlite3.Connection) -> int:
            _schedule(conn, next_due)
            if listed is not None:
                _forget_unlisted(conn, frozenset(listed))
            ((beat_id,),) = conn.execute(_BEGIN, values).fetchall()
            return int(beat_id)

        return await self._db.write(begin)

    async def end_beat(
        self,
        beat_id: int,
        findings: Sequence[BeatFinding],
        *,
        tokens: int = 0,
        cost_usd: float = 0.0,
    ) -> tuple[Beat, tuple[Alert, ...]]:
        """See BeatStore."""
        now = self._clock.now()
        text = well_formed(text_of(findings))
        done = [
            {"item": item, "now": stamp(now)} for found in findings for item in found.done_items
        ]
        watches = [found.watch for found in findings if found.watch is not None]

        def end(conn: sqlite3.Connection) -> tuple[Beat, tuple[Alert, ...]]:
            told, put = _put_alerts(conn, findings, now)
            main = main_finding(told)
            values = (main.outcome, main.reason, text, tokens, cost_usd, main.repeats, beat_id)
            rows = conn.execute(_END, values).fetchall()
            if not rows:
                raise NotFound(f"there is no running beat {beat_id}")
            conn.executemany(_DONE, done)
            known = self._watches(conn) if watches else {}
            seen = (_as_erased(watch, known.get(watch.entry)) for watch in watches)
            conn.executemany(_WATCH, [_dump_watch(watch, self._redactor) for watch in seen])
            return _load_beat(rows[0]), put

        return await self._db.write(end)

    async def skip_beat(
        self, due: datetime | None, next_due: datetime | None, reason: Reason, file_hash: str = ""
    ) -> Beat:
        """See BeatStore."""
        values = (stamp(self._clock.now()), maybe_stamp(due), reason, file_hash)

        def skip(conn: sqlite3.Connection) -> Beat:
            if due is not None:
                _schedule(conn, next_due)
            (row,) = conn.execute(_SKIP, values).fetchall()
            return _load_beat(row)

        return await self._db.write(skip)

    async def interrupt_beats(self) -> int:
        """See BeatStore. Returns how many beats were interrupted."""
        return await self._db.execute(_INTERRUPT, ())

    async def beats(self, limit: int) -> tuple[Beat, ...]:
        """See BeatStore."""

        def find(conn: sqlite3.Connection) -> tuple[Beat, ...]:
            found = conn.execute(_NEWEST, (max(0, limit),))
            return self._unreadable.readable(found, _load_beat)

        return await self._db.read(find)

    async def items(self, hashes: Sequence[str]) -> Mapping[str, ItemState]:
        """See BeatStore."""
        now = stamp(self._clock.now())
        asked = dict.fromkeys(hashes)
        # Most beats have no new items; a read first saves them the sync of a write.
        known = await self._db.read(_items)
        if asked.keys() <= known.keys():
            return {item: known[item] for item in asked}

        def see(conn: sqlite3.Connection) -> dict[str, ItemState]:
            conn.executemany(
                "INSERT INTO items (hash, first_seen) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [(item, now) for item in asked],
            )
            stored = _items(conn)
            return {item: stored[item] for item in asked}

        return await self._db.write(see)

    async def watches(self, entries: Sequence[str]) -> Mapping[str, WatchedEntry]:
        """See BeatStore."""
        known = await self._db.read(self._watches)
        return {entry: known[entry] for entry in entries if entry in known}

    def _watches(self, conn: sqlite3.Connection) -> dict[str, WatchedEntry]:
        found = conn.execute("SELECT * FROM watches")
        return {watch.entry: watch for watch in self._unseen.readable(found, _load_watch)}


def _put_alerts(
    conn: sqlite3.Connection, findings: Sequence[BeatFinding], at: datetime
) -> tuple[list[BeatFinding], tuple[Alert, ...]]:
    """Put the alerts of the findings; return the findings, those with a repeated alert as quiet
    duplicates, and the alerts that were put.
    """
    told: list[BeatFinding] = []
    put: list[Alert] = []
    for found in findings:
        alert = found.alert
        repeats = None if alert is None else repeated_by(conn, alert, at)
        if alert is not None and repeats is None:
            put.append(store_alert(conn, alert, at))
        told.append(found if repeats is None else found.untold(repeats))
    return told, tuple(put)


def _forget_unlisted(conn: sqlite3.Connection, listed: frozenset[str]) -> None:
    items = [(item,) for item in _items(conn) if item not in listed]
    conn.executemany("DELETE FROM items WHERE hash = ?", items)
    watched = [row["entry"] for row in conn.execute("SELECT entry FROM watches")]
    entries = [(entry,) for entry in watched if entry not in listed]
    conn.executemany("DELETE FROM watches WHERE entry = ?", entries)


def _load_watch(row: sqlite3.Row) -> WatchedEntry:
    return WatchedEntry(
        row["entry"],
        tuple(WatchedCall(*call) for call in json.loads(row["calls"])),
        maybe_moment(row["looked_at"]),
        row["told"],
        maybe_moment(row["told_at"]),
        maybe_moment(row["failing_since"]),
        row["failure"],
    )


def _as_erased(watch: WatchedEntry, known: WatchedEntry | None) -> WatchedEntry:
    """Return the watch without words that were erased from the stored one (`known`) while its beat
    ran.
    """
    if known is None:
        return watch
    calls = {call.key: call for call in known.calls if not call.digest}
    kept = tuple(
        old if (old := calls.get(call.key)) is not None and is_same(old, call) else call
        for call in watch.calls
    )
    told = known.told if watch.told_at == known.told_at else watch.told
    return replace(watch, calls=kept, told=told)


def _dump_watch(watch: WatchedEntry, redactor: Redactor) -> tuple[str | None, ...]:
    calls = [
        [
            redactor.kept(call.name).text,
            redactor.plain(call.input),
            redactor.kept(call.answer).text,
            call.digest,
            call.repeats,
        ]
        for call in watch.calls
    ]
    return (
        watch.entry,
        dumps(calls),
        maybe_stamp(watch.looked_at),
        well_formed(redactor.kept(watch.told).text),
        maybe_stamp(watch.told_at),
        maybe_stamp(watch.failing_since),
        well_formed(redactor.kept(watch.failure).text),
    )


def _schedule(conn: sqlite3.Connection, next_due: datetime | None) -> None:
    conn.execute("UPDATE heartbeat SET next_due = ?", (maybe_stamp(next_due),))


def _items(conn: sqlite3.Connection) -> dict[str, ItemState]:
    found = conn.execute("SELECT hash, first_seen, last_done FROM items")
    return {
        row["hash"]: ItemState(
            row["hash"], moment(row["first_seen"]), maybe_moment(row["last_done"])
        )
        for row in found
    }


def _load_beat(row: sqlite3.Row) -> Beat:
    return Beat(
        id=row["id"],
        at=moment(row["at"]),
        due=maybe_moment(row["due"]),
        outcome=Outcome(row["outcome"]),
        reason=Reason(row["reason"]),
        text=row["text"],
        tokens=row["tokens"],
        cost_usd=row["cost_usd"],
        file_hash=row["file_hash"],
        forced=bool(row["forced"]),
        entries=tuple(map(str, json.loads(row["entries"]))),
        repeats=row["repeats"],
        repeats_at=maybe_moment(row["repeats_at"]),
    )
