"""The Journal in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from agentd.core.redaction import Redactor
from agentd.core.tool import Intent, OpenCall, ToolOutput
from agentd.storage.codec import dump_intent, dump_output, load_intent, load_output
from agentd.storage.redacting import redact_intent, redact_output
from agentd.storage.sqlite import Database

_INTEND = """
INSERT INTO calls (turn_id, call_id, intent, data) VALUES (?, ?, ?, ?)
ON CONFLICT (turn_id, call_id) DO UPDATE SET intent = excluded.intent, data = excluded.data
"""
_SETTLE = """
INSERT INTO calls (turn_id, call_id, output) VALUES (?, ?, ?)
ON CONFLICT (turn_id, call_id) DO UPDATE SET output = excluded.output, data = NULL, intent = NULL
"""
_OPEN = """
SELECT c.turn_id, c.call_id, c.intent, c.data FROM calls c JOIN turns t ON t.id = c.turn_id
WHERE t.ended_at IS NULL AND c.intent IS NOT NULL AND c.output IS NULL ORDER BY c.id
"""
_OUTPUTS = """
SELECT call_id, output FROM calls WHERE turn_id = ? AND output IS NOT NULL ORDER BY id
"""


class SqliteJournal:
    """The Journal of the state database. Secrets that `redactor` finds are not stored."""

    def __init__(self, db: Database, redactor: Redactor | None = None) -> None:
        self._db = db
        self._redactor = redactor or Redactor()

    async def intend(self, turn_id: int, intent: Intent) -> None:
        """See Journal."""
        text, data = dump_intent(redact_intent(intent, self._redactor))
        values = (turn_id, intent.call.id, text, data)
        await self._db.execute(_INTEND, values)

    async def settle(self, turn_id: int, call_id: str, output: ToolOutput) -> None:
        """See Journal. The intent is no longer needed and is erased."""
        values = (turn_id, call_id, dump_output(redact_output(output, self._redactor)))
        await self._db.execute(_SETTLE, values)

    async def outputs(self, turn_id: int) -> Mapping[str, ToolOutput]:
        """See Journal."""

        def find(conn: sqlite3.Connection) -> dict[str, ToolOutput]:
            found = conn.execute(_OUTPUTS, (turn_id,))
            return {row["call_id"]: load_output(row["output"]) for row in found}

        return await self._db.read(find)

    async def open_calls(self) -> tuple[OpenCall, ...]:
        """See Journal."""

        def find(conn: sqlite3.Connection) -> tuple[OpenCall, ...]:
            return tuple(
                OpenCall(row["turn_id"], row["call_id"], load_intent(row["intent"], row["data"]))
                for row in conn.execute(_OPEN)
            )

        return await self._db.read(find)
