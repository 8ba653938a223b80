"""What model calls cost, and which services have answered, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from agentd.core.health import Problem
from agentd.core.money import BUILT_IN, Cap, Charge
from agentd.core.ports import Clock
from agentd.core.turn import Origin, SessionKey, Usage
from agentd.storage.codec import UnreadableRows, dump_usage, load_usage, moment, stamp
from agentd.storage.sqlite import Database

_CHARGE = """
INSERT INTO charges (at, session, origin, model, usage, total_tokens, cost_usd)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_SPENT = """
SELECT coalesce(sum(total_tokens), 0), coalesce(sum(cost_usd), 0.0) FROM charges
WHERE at BETWEEN :since AND :until AND (:origin IS NULL OR origin = :origin) AND model != :built_in
"""

_SETTLE = """
UPDATE charges SET session = ?, model = ?, usage = ?, total_tokens = ?, cost_usd = ? WHERE id = ?
"""
_BREAKDOWN = """
SELECT session, origin, sum(total_tokens), sum(cost_usd) FROM charges
WHERE at BETWEEN ? AND ? AND model != ? GROUP BY session, origin
ORDER BY sum(cost_usd) DESC, sum(total_tokens) DESC, session, origin
"""
# A usage column is a list: input, output, read from a cache, written to it.
_CACHED = """
SELECT coalesce(sum(usage ->> 2), 0),
    coalesce(sum(total_tokens - (usage ->> 1)), 0)
FROM charges WHERE at BETWEEN ? AND ? AND origin != ? AND model != ?
"""

# Charges later than this were made while the clock was ahead and would count in every month until
# then. Charges within a day still count: setting the clock back by hours must not free any budget.
_AHEAD = timedelta(days=1)
_ORIGINS = frozenset(map(str, Origin))


class SqliteLedger:
    """The Ledger of the state database."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._unreadable = UnreadableRows("charge", "budgets count it all the same")

    def problems(self) -> tuple[Problem, ...]:
        """The charges whose rows are unreadable."""
        return self._unreadable.problems()

    async def reserve(
        self, origin: Origin, model: str, usage: Usage, cost_usd: float, caps: Sequence[Cap]
    ) -> int:
        """See Ledger. The check and the reservation are one transaction."""
        values = (
            stamp(self._clock.now()),
            "",
            origin,
            model,
            dump_usage(usage),
            usage.total_tokens,
            cost_usd,
        )

        def set_aside(conn: sqlite3.Connection) -> int:
            for cap in caps:
                _check(conn, cap, self._span(cap.since), usage.total_tokens, cost_usd)
            return int(conn.execute(_CHARGE, values).lastrowid or 0)

        return await self._db.write(set_aside)

    async def charge(
        self,
        session: SessionKey,
        origin: Origin,
        model: str,
        usage: Usage,
        cost_usd: float,
        *,
        reservation: int | None = None,
    ) -> None:
        """See Ledger."""
        spent = (model, dump_usage(usage), usage.total_tokens, cost_usd)
        if reservation is None:
            at = stamp(self._clock.now())
            await self._db.execute(_CHARGE, (at, session, origin, *spent))
        else:
            await self._db.execute(_SETTLE, (session, *spent, reservation))

    async def spending(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        """See Ledger."""
        values = {**self._span(since), "origin": origin, "built_in": BUILT_IN}

        def add_up(conn: sqlite3.Connection) -> tuple[int, float]:
            tokens, cost = conn.execute(_SPENT, values).fetchone()
            return tokens, cost

        return await self._db.read(add_up)

    async def breakdown(self, since: datetime) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
        """See Ledger."""
        values = (*self._span(since).values(), BUILT_IN)

        def add_up(conn: sqlite3.Connection) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
            return tuple(
                (SessionKey(session), Origin(origin), tokens, usd)
                for session, origin, tokens, usd in conn.execute(_BREAKDOWN, values)
                if origin in _ORIGINS  # a damaged one still counts in the sums of `spent`
            )

        return await self._db.read(add_up)

    def _span(self, since: datetime) -> dict[str, str]:
        return {"since": stamp(since), "until": stamp(self._clock.now() + _AHEAD)}

    async def entries(self) -> tuple[Charge, ...]:
        """See Ledger."""

        def find(conn: sqlite3.Connection) -> tuple[Charge, ...]:
            found = conn.execute("SELECT * FROM charges ORDER BY id")
            return self._unreadable.readable(found, _load)

        return await self._db.read(find)

    async def cache_use(self, since: datetime) -> tuple[int, int]:
        """See Ledger."""

        def add_up(conn: sqlite3.Connection) -> tuple[int, int]:
            values = (*self._span(since).values(), Origin.EMBEDDING, BUILT_IN)
            cached, read = conn.execute(_CACHED, values).fetchone()
            return int(cached), int(read)

        return await self._db.read(add_up)


def _load(row: sqlite3.Row) -> Charge:
    return Charge(
        at=moment(row["at"]),
        session=SessionKey(row["session"]),
        origin=Origin(row["origin"]),
        model=row["model"],
        usage=load_usage(row["usage"]) or Usage(),
        cost_usd=row["cost_usd"],
    )


def _check(
    conn: sqlite3.Connection, cap: Cap, span: Mapping[str, str], tokens: int, usd: float
) -> None:
    values = {**span, "origin": cap.origin, "built_in": BUILT_IN}
    cap.check(conn.execute(_SPENT, values).fetchone(), tokens, usd)


class SqliteServiceRecord:
    """The ServiceRecord of the service with this `name`."""

    def __init__(self, db: Database, clock: Clock, name: str) -> None:
        self._db = db
        self._clock = clock
        self._name = name
        self._is_known = False

    async def has_answered(self) -> bool:
        """See ServiceRecord."""
        if not self._is_known:
            self._is_known = await self._db.read(
                lambda conn: (
                    conn.execute("SELECT 1 FROM services WHERE name = ?", (self._name,)).fetchone()
                    is not None
                )
            )
        return self._is_known

    async def record_answer(self) -> None:
        """See ServiceRecord."""
        if await self.has_answered():
            return
        await self._db.execute(
            "INSERT OR IGNORE INTO services (name, at) VALUES (?, ?)",
            (self._name, stamp(self._clock.now())),
        )
        self._is_known = True
