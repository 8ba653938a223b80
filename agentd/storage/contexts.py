"""The rows of long contexts, decoded once and kept in memory while sessions go on.

A turn adds rows and changes none, so those that are kept hold until a row is changed or deleted; then
all of them are dropped at once, whatever did it: triggers of the connection tell. Bounded by their size over
all sessions. Used in the database's thread alone.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from dataclasses import dataclass

from agentd.domain.transcript import DAMAGED, Row, without_loose_calls
from agentd.storage.codec import load_row
from agentd.storage.seals import is_proven

MOST = 8 << 20  # bytes, about
FEW = 64  # rows: so many are decoded in no time
_ROW = 800  # bytes of a row beside its text

_NEXT = """
SELECT rows.*, PROVEN AS proven FROM rows
WHERE session_id = ? AND seq >= ? AND role IN ('user', 'assistant', 'notice') ORDER BY seq
""".replace("PROVEN", is_proven("rows."))
_DIGEST = "SELECT digest FROM rows WHERE session_id = ? AND seq = ?"
_TELL = "CREATE TEMP TRIGGER {name}_{event} AFTER {event} ON main.rows BEGIN SELECT {name}(); END"


@dataclass(slots=True)
class _Context:
    """The rows of a session from number `first` on. `digest` is the last one's: it has to stand there
    still, since a transaction that failed may have been seen.
    """

    first: int
    rows: tuple[Row, ...]
    digest: bytes
    characters: int

    @property
    def size(self) -> int:
        """About how many bytes that is."""
        return self.characters + _ROW * len(self.rows)


class Contexts:
    """The contexts of the sessions used last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: OrderedDict[int, _Context] = OrderedDict()
        self._conn: sqlite3.Connection | None = None

    @property
    def size(self) -> int:
        """About how many bytes are held."""
        return sum(context.size for context in self._held.values())

    def rows(self, conn: sqlite3.Connection, session_id: int, first: int) -> tuple[Row, ...]:
        """The rows of a context that begins with number `first`."""
        self._listen(conn)
        held = self._held.pop(session_id, None)
        if held is not None and not (held.first == first and self._stands(conn, session_id, held)):
            held = None
        old = held.rows if held else ()
        new = conn.execute(_NEXT, (session_id, old[-1].seq + 1 if old else first)).fetchall()
        rows = (*old, *map(load_row, new)) if new else old
        if any(row.tag == DAMAGED for row in rows[len(old) :]):
            return without_loose_calls(rows)  # which is looked at again
        characters = (held.characters if held else 0) + sum(len(row["blocks"]) for row in new)
        digest = new[-1]["digest"] if new else held.digest if held else b""
        if len(rows) >= FEW:
            self._keep(session_id, _Context(first, rows, digest, characters))
        return rows

    def characters(self, session_id: int, first: int) -> int | None:
        """How many characters a context had when it was read last; None if it is not held."""
        held = self._held.get(session_id)
        return held.characters if held is not None and held.first == first else None

    def clear(self) -> None:
        """Hold nothing."""
        self._held.clear()

    def _keep(self, session_id: int, context: _Context) -> None:
        self._held[session_id] = context
        while self._held and self.size > self._most:
            self._held.popitem(last=False)

    def _stands(self, conn: sqlite3.Connection, session_id: int, held: _Context) -> bool:
        found = conn.execute(_DIGEST, (session_id, held.rows[-1].seq)).fetchone()
        return found is not None and found["digest"] == held.digest

    def _listen(self, conn: sqlite3.Connection) -> None:
        """Hear of changed rows from a connection that is new here."""
        if self._conn is conn:
            return
        self.clear()
        name = f"contexts_{id(self)}"  # the connection holds this object: no other has the number
        conn.create_function(name, 0, self.clear)
        for event in ("UPDATE", "DELETE"):
            conn.execute(_TELL.format(name=name, event=event))
        self._conn = conn
