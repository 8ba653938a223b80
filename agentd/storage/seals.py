"""Keyed digests of the rows of transcripts, as functions that statements call.

There is one digest for each row, of all that it says and where it stands, so that a row can be masked or
erased without touching another. Who has no key cannot make one; damage does not make one either.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

DIGEST_BYTES = 16
COLUMNS = ("session_id", "seq", "role", "opens_turn", "at", "provider", "usage", "tag", "source")
_NUMBERS = frozenset({"session_id", "seq", "opens_turn"})
_TAGS = {type(None): b"n", int: b"i", float: b"f", str: b"s", bytes: b"s"}
Value = None | int | float | str | bytes


def digest_of(prefix: str = "", **given: str) -> str:
    """The call that makes a row's digest in SQL: of the columns, each behind `prefix`, or of what is
    given in their place.
    """
    values = {name: given.get(name, prefix + name) for name in (*COLUMNS, "blocks")}
    # Text as bytes: damaged text may be none in Unicode, which no function could be given.
    told = [v if name in _NUMBERS else f"CAST({v} AS BLOB)" for name, v in values.items()]
    return f"row_digest({', '.join(told)})"


def is_proven(prefix: str = "") -> str:
    """The call that tells whether a row is what was stored."""
    return digest_of(prefix).replace("row_digest(", f"row_proven({prefix}digest, ")


@dataclass(slots=True)
class Seals:
    """The functions, with their key. `broken` are the rows, by session id and number, that were found not
    to be what was stored, and not found well since; `made` are the first and the last row that got a
    digest since it was emptied, by session id. Without `checks` every row is taken for proven.
    """

    key: bytes
    checks: bool = True
    broken: dict[tuple[object, object], None] = field(default_factory=dict)
    made: dict[object, list[int]] = field(default_factory=dict)

    @property
    def key_id(self) -> bytes:
        """What tells keys apart and says nothing about them."""
        return hashlib.blake2b(b"key id", key=self.key, digest_size=8).digest()

    def attach(self, conn: sqlite3.Connection) -> None:
        """Let the connection's statements call them."""
        count = len(COLUMNS) + 1
        conn.create_function("row_digest", count, self.digest, deterministic=True)
        conn.create_function("row_proven", count + 1, self.proven)

    def digest(self, *values: Value) -> bytes:
        """Of the values of a row that is stored, in the order of the columns."""
        session, seq = values[:2]
        if isinstance(seq, int):
            known = self.made.setdefault(session, [seq, seq])
            known[:] = min(known[0], seq), max(known[1], seq)
        return self._digest(values)

    def proven(self, digest: Value, *values: Value) -> bool:
        """Whether that is the row's digest."""
        if not self.checks:
            return True
        is_well = digest == self._digest(values)
        place = values[0], values[1]
        if is_well:
            self.broken.pop(place, None)
        else:
            self.broken[place] = None
        return is_well

    def _digest(self, values: Sequence[Value]) -> bytes:
        made = hashlib.blake2b(key=self.key, digest_size=DIGEST_BYTES)
        for value in values:
            data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            made.update(b"%s%d:" % (_TAGS[type(value)], len(data)))
            made.update(data)
        return made.digest()
