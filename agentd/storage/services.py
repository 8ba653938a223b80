"""Which services have answered, in SQLite."""

from __future__ import annotations

from agentd.ports import Clock
from agentd.storage.codec import stamp
from agentd.storage.sqlite import Database


class SqliteServiceRecord:
    """The ServiceRecord of the service that `name` stands for."""

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

    async def answered(self) -> None:
        """See ServiceRecord."""
        if await self.has_answered():
            return
        await self._db.execute(
            "INSERT OR IGNORE INTO services (name, at) VALUES (?, ?)",
            (self._name, stamp(self._clock.now())),
        )
        self._is_known = True
