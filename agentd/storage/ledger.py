"""What model calls have cost, in SQLite."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from agentd.domain.turn import Origin, SessionKey, Usage
from agentd.ports import Clock
from agentd.storage.codec import dump_usage, stamp
from agentd.storage.sqlite import Database

_CHARGE = """
INSERT INTO charges (at, session, origin, model, usage, total_tokens, cost_usd)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_SPENT = """
SELECT coalesce(sum(total_tokens), 0), coalesce(sum(cost_usd), 0.0) FROM charges
WHERE at >= :since AND (:origin IS NULL OR origin = :origin)
"""


class SqliteLedger:
    """The Ledger of the state database."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def charge(
        self, session: SessionKey, origin: Origin, model: str, usage: Usage, cost_usd: float
    ) -> None:
        """See Ledger."""
        at = stamp(self._clock.now())
        values = (at, session, origin, model, dump_usage(usage), usage.total_tokens, cost_usd)
        await self._db.execute(_CHARGE, values)

    async def spent(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        """See Ledger."""
        values = {"since": stamp(since), "origin": origin}

        def add_up(conn: sqlite3.Connection) -> tuple[int, float]:
            tokens, cost = conn.execute(_SPENT, values).fetchone()
            return tokens, cost

        return await self._db.read(add_up)
