"""The ErasureStore in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping

from agentd.core.erasure import Erasure
from agentd.storage.codec import dumps
from agentd.storage.sqlite import Database

_KNOWN = "SELECT id FROM fact_erasures WHERE needles = ?"
_ADD = "INSERT INTO fact_erasures (needles) VALUES (?) RETURNING id"
_CHANGE = "UPDATE fact_erasures SET needles = ? WHERE id = ?"
_ALL = "SELECT * FROM fact_erasures ORDER BY id"
_END = "DELETE FROM fact_erasures WHERE id = ?"


class SqliteErasures:
    """The ErasureStore of the state database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def begin(self, erasure: Erasure) -> int:
        """See ErasureStore. An equal erasure is not stored twice: its number is returned."""
        text = dumps(erasure.as_json())

        def change(conn: sqlite3.Connection) -> int:
            if found := conn.execute(_KNOWN, (text,)).fetchone():
                return int(found["id"])
            ((number,),) = conn.execute(_ADD, (text,)).fetchall()
            return int(number)

        return await self._db.write(change)

    async def update(self, number: int, erasure: Erasure) -> None:
        """See ErasureStore."""
        await self._db.execute(_CHANGE, (dumps(erasure.as_json()), number))

    async def open(self) -> Mapping[int, Erasure]:
        """See ErasureStore."""
        rows = await self._db.read(lambda conn: conn.execute(_ALL).fetchall())
        return {row["id"]: Erasure.from_json(json.loads(row["needles"])) for row in rows}

    async def end(self, numbers: Collection[int]) -> None:
        """See ErasureStore. Slow: no byte of them may be left in the database's files."""
        rows = [(number,) for number in numbers]
        await self._db.erase(lambda conn: conn.executemany(_END, rows).rowcount)
