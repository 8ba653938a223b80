"""Looking at all rows of transcripts, whether they are what was stored: after each start, then daily."""

from __future__ import annotations

import sqlite3
from functools import partial

import structlog

from agentd.core.errors import StorageError
from agentd.core.ports import Clock
from agentd.engine.workers import Daily
from agentd.storage.proofs import is_proven
from agentd.storage.sqlite import Database

log = structlog.get_logger()

PAGE = 500  # rows that are looked at in one go: a few milliseconds of the database's thread

_LAST = "SELECT coalesce(max(id), 0) FROM rows"
_BROKEN = "SELECT count(*) FROM rows WHERE id > ? AND id <= ? AND NOT PROVEN"
_BROKEN = _BROKEN.replace("PROVEN", is_proven())


class Proving:
    """What it finds stands among the problems of the database."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._daily = Daily("proof", self.look, clock)

    async def run(self) -> None:
        """Look at once, then daily, until cancelled."""
        try:
            await self.look()
        except StorageError as error:
            log.warning("rows_not_proven", reason=error.reason)
        await self._daily.run()

    async def look(self) -> int:
        """How many rows are not what was stored. Raises StorageError."""
        (last,) = await self._db.read(lambda conn: conn.execute(_LAST).fetchone())
        broken = 0
        for first in range(0, last, PAGE):
            broken += await self._db.read(partial(_broken, first=first))
        if broken:
            log.error("rows_damaged", count=broken)
        return broken


def _broken(conn: sqlite3.Connection, first: int) -> int:
    return int(conn.execute(_BROKEN, (first, first + PAGE)).fetchone()[0])
