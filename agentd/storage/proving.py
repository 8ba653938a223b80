"""Checks all rows of transcripts against their digests: after each start, then daily."""

from __future__ import annotations

import sqlite3
from functools import partial

import structlog

from agentd.core.errors import StorageError
from agentd.core.ports import Clock
from agentd.engine.workers import DailyWorker
from agentd.storage.proofs import is_proven
from agentd.storage.sqlite import Database

log = structlog.get_logger()

PAGE = 500  # rows checked in one read: a few milliseconds of the database's thread

_LAST = "SELECT coalesce(max(id), 0) FROM rows"
_BROKEN = "SELECT count(*) FROM rows WHERE id > ? AND id <= ? AND NOT PROVEN"
_BROKEN = _BROKEN.replace("PROVEN", is_proven())


class RowCheck:
    """The check of all rows. Rows that fail it appear among the problems of the database."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._daily = DailyWorker("proof", self.look, clock)

    async def run(self) -> None:
        """Check at once, then daily, until cancelled."""
        try:
            await self.look()
        except StorageError as error:
            log.warning("rows_not_proven", reason=error.reason)
        await self._daily.run()

    async def look(self) -> int:
        """Check all rows; return how many do not match their digest. Raises StorageError."""
        (last,) = await self._db.read(lambda conn: conn.execute(_LAST).fetchone())
        broken = 0
        for first in range(0, last, PAGE):
            broken += await self._db.read(partial(_broken, first=first))
        if broken:
            log.error("rows_damaged", count=broken)
        return broken


def _broken(conn: sqlite3.Connection, first: int) -> int:
    return int(conn.execute(_BROKEN, (first, first + PAGE)).fetchone()[0])
