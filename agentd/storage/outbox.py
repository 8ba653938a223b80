"""The Outbox in SQLite: alerts and their deliveries."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from agentd.core.alert import (
    Alert,
    AlertSeverity,
    Delivery,
    DeliveryProgress,
    DeliveryState,
    NewAlert,
)
from agentd.core.errors import NotFound
from agentd.core.ports import Clock
from agentd.core.text import well_formed
from agentd.storage.codec import dumps, maybe_moment, moment, stamp
from agentd.storage.sqlite import Database

_DAMAGED = "what was noted of this delivery is damaged"
REPEAT_AFTER = timedelta(hours=24)  # an equal alert is not put again sooner than this
# Longer than any pause between tries, digest or quiet hours: a later due time was set while the
# clock was ahead.
_LONGEST_WAIT = timedelta(days=2)

_TOLD = """
SELECT id FROM alerts
WHERE digest = ? AND at > ? AND at <= ? AND tainted <= ? AND (acked = 1 OR EXISTS (
    SELECT 1 FROM deliveries WHERE alert_id = alerts.id AND state IN ('sent', 'pending')
    AND sink IN (SELECT value FROM json_each(?))
)) ORDER BY id DESC LIMIT 1
"""
_INSERT = """
INSERT INTO alerts (at, text, origin, recipient, digest, tainted, severity)
VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id
"""
_DUE = """
SELECT alert_id, sink, attempts FROM deliveries JOIN alerts ON alerts.id = alert_id
WHERE state = 'pending' AND acked = 0 AND (
    due_at <= :now OR due_at > :far OR coalesce(tried_at, at) > :now
    OR attempts > 0 AND sink IN (SELECT value FROM json_each(:recovered)))
ORDER BY alert_id, due_at, sink
"""
_NEXT_DUE = """
SELECT min(due_at) FROM deliveries JOIN alerts ON alerts.id = alert_id
WHERE state = 'pending' AND acked = 0
"""
_SENT = """
UPDATE deliveries SET state = 'sent', attempts = attempts + 1, tried_at = ?, error = ''
WHERE alert_id = ? AND sink = ?
"""
_RETRY = """
UPDATE deliveries SET attempts = attempts + 1, state = ?, due_at = ?, tried_at = ?, error = ?
WHERE alert_id = ? AND sink = ?
"""
_HOLD = """
UPDATE deliveries SET due_at = coalesce((
    SELECT min(due_at) FROM deliveries AS other JOIN alerts ON alerts.id = other.alert_id
    WHERE other.sink = :sink AND other.state = 'pending' AND acked = 0 AND other.attempts = 0
    AND other.due_at > :now AND other.due_at < :until
), :until) WHERE alert_id = :alert AND sink = :sink
"""
_NEWEST = "SELECT * FROM alerts ORDER BY id DESC LIMIT ?"
_NEWEST_UNACKED = "SELECT * FROM alerts WHERE acked = 0 ORDER BY id DESC LIMIT ?"


def repeated_by(conn: sqlite3.Connection, new: NewAlert, at: datetime) -> int | None:
    """Return the id of the alert that this one would repeat; None if it is to be told, see
    Outbox.put.
    """
    # An alert put while the clock was ahead does not count: it would suppress this one until then.
    span = (stamp(at - REPEAT_AFTER), stamp(at))
    told = (new.digest, *span, new.tainted, dumps(new.told_by))
    # A tainted alert never suppresses an untainted one.
    found = conn.execute(_TOLD, told).fetchone()
    return None if found is None else int(found["id"])


def put_alert(conn: sqlite3.Connection, new: NewAlert, at: datetime) -> Alert | None:
    """Store an alert and its deliveries; return None for a repetition, see Outbox.put."""
    return None if repeated_by(conn, new, at) is not None else store_alert(conn, new, at)


def store_alert(conn: sqlite3.Connection, new: NewAlert, at: datetime) -> Alert:
    """Store an alert, be it a repetition or not, and its deliveries."""
    text = well_formed(new.text)
    values = (stamp(at), text, new.origin, new.to, new.digest, new.tainted, new.severity)
    ((alert_id,),) = conn.execute(_INSERT, values).fetchall()
    sinks = tuple(dict.fromkeys(new.sinks))
    conn.executemany(
        "INSERT INTO deliveries (alert_id, sink, state, due_at) VALUES (?, ?, 'pending', ?)",
        [(alert_id, sink, stamp(at)) for sink in sinks],
    )
    return Alert(
        alert_id,
        at,
        text,
        new.origin,
        new.to,
        handovers=tuple(DeliveryProgress(sink, next_try=at) for sink in sinks),
        tainted=new.tainted,
        severity=new.severity,
    )


class SqliteOutbox:
    """The Outbox of the state database."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def put(self, alert: NewAlert) -> Alert | None:
        """See Outbox."""
        now = self._clock.now()
        return await self._db.write(lambda conn: put_alert(conn, alert, now))

    async def due(self, recovered: Collection[str] = ()) -> tuple[Delivery, ...]:
        """See Outbox."""
        now = self._clock.now()
        values = {
            "now": stamp(now),
            "far": stamp(now + _LONGEST_WAIT),
            "recovered": dumps(sorted(recovered)),
        }

        def find(conn: sqlite3.Connection) -> tuple[Delivery, ...]:
            return tuple(
                Delivery(_get(conn, row["alert_id"]), row["sink"], row["attempts"])
                for row in conn.execute(_DUE, values).fetchall()
            )

        return await self._db.read(find)

    async def next_due(self) -> datetime | None:
        """See Outbox."""
        return maybe_moment(await self._db.read(lambda conn: conn.execute(_NEXT_DUE).fetchone()[0]))

    async def mark_sent(self, alert_id: int, sink: str) -> None:
        """See Outbox."""
        await self._db.execute(_SENT, (stamp(self._clock.now()), alert_id, sink))

    async def retry(
        self, alert_id: int, sink: str, until: datetime | None, error: str = ""
    ) -> None:
        """See Outbox."""
        state = DeliveryState.FAILED if until is None else DeliveryState.PENDING
        now = self._clock.now()
        due_at = stamp(until or now)
        values = (state, due_at, stamp(now), well_formed(error), alert_id, sink)
        await self._db.execute(_RETRY, values)

    async def hold(self, alert_id: int, sink: str, until: datetime) -> None:
        """See Outbox."""
        values = {
            "alert": alert_id,
            "sink": sink,
            "until": stamp(until),
            "now": stamp(self._clock.now()),
        }
        await self._db.write(lambda conn: conn.execute(_HOLD, values).rowcount)

    async def alerts(self, limit: int, *, unacked: bool = False) -> tuple[Alert, ...]:
        """See Outbox."""
        query = _NEWEST_UNACKED if unacked else _NEWEST

        def find(conn: sqlite3.Connection) -> tuple[Alert, ...]:
            return _load(conn, conn.execute(query, (max(0, limit),)).fetchall())

        return await self._db.read(find)

    async def ack(self, alert_id: int) -> Alert:
        """See Outbox."""

        def mark(conn: sqlite3.Connection) -> Alert:
            conn.execute("UPDATE alerts SET acked = 1 WHERE id = ?", (alert_id,))
            return _get(conn, alert_id)

        return await self._db.write(mark)


def _get(conn: sqlite3.Connection, alert_id: int) -> Alert:
    found = conn.execute("SELECT * FROM alerts WHERE id = ?", (alert_id,)).fetchall()
    if not found:
        raise NotFound(
            f"there is no alert {alert_id}", cure="`agentd alerts list` shows all of them"
        )
    return _load(conn, found)[0]


def _load(conn: sqlite3.Connection, found: Iterable[sqlite3.Row]) -> tuple[Alert, ...]:
    return tuple(
        Alert(
            id=row["id"],
            at=moment(row["at"]),
            text=row["text"],
            origin=row["origin"],
            to=row["recipient"],
            acked=bool(row["acked"]),
            handovers=_handovers(conn, row["id"], acked=bool(row["acked"])),
            tainted=bool(row["tainted"]),
            severity=_severity(row["severity"]),
        )
        for row in found
    )


def _handovers(
    conn: sqlite3.Connection, alert_id: int, *, acked: bool
) -> tuple[DeliveryProgress, ...]:
    # A delivery stays pending in its row when its alert is acknowledged: a try that is under way
    # may still be recorded.
    found = conn.execute("SELECT * FROM deliveries WHERE alert_id = ? ORDER BY rowid", (alert_id,))
    known = (
        DeliveryProgress(
            row["sink"],
            state := _state(row["state"]),
            row["attempts"],
            moment(row["due_at"]) if state is DeliveryState.PENDING else None,
            maybe_moment(row["tried_at"]),
            row["error"] if row["state"] == state else _DAMAGED,
        )
        for row in found
    )
    return tuple(one.once_acked() if acked else one for one in known)


def _severity(word: str) -> AlertSeverity:
    """Return the severity of the word; the highest if damage has changed it. The alert's text is
    intact, and rather delivered at a bad hour than not at all.
    """
    return AlertSeverity(word) if word in set(AlertSeverity) else AlertSeverity.URGENT


def _state(word: str) -> DeliveryState:
    """Return the state of the word; FAILED if damage has changed it: it is not tried again, and the
    list of alerts shows that.
    """
    return DeliveryState(word) if word in set(DeliveryState) else DeliveryState.FAILED
