"""Rows in which damage has changed a word: left out one by one, and told.

No digest guards these tables as one guards transcripts. What cannot be read of one row must keep no
other row from its work, and must not go by in silence either.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog

from agentd.core.errors import AgentdError, StorageError
from agentd.core.health import Problem

log = structlog.get_logger()
T = TypeVar("T")

# What the makers of our values raise for what they were never given: a word of no enum, JSON that is
# none or of another shape, a number out of all bounds.
_MISMADE = (ValueError, KeyError, TypeError, IndexError, OverflowError, AgentdError)


class UnreadableRows:
    """Those of one table, by their ids; each stands among the problems until it is read again or gone.
    `what` names one row of it, `cure` says what to do, `key` is the column that tells rows apart.
    """

    def __init__(self, what: str, cure: str, key: str = "id") -> None:
        self._what = what
        self._cure = cure
        self._key = key
        self._ids: frozenset[int | str] = frozenset()  # replaced whole: another thread asks for it

    def readable(
        self, rows: Iterable[sqlite3.Row], load: Callable[[sqlite3.Row], T]
    ) -> tuple[T, ...]:
        """What `load` makes of the rows, without those of which it can make nothing."""
        found: list[T] = []
        bad: set[int | str] = set()
        good: set[int | str] = set()
        for row in rows:
            row_id = row[self._key]
            try:
                found.append(load(row))
                good.add(row_id)
            except _MISMADE as error:
                bad.add(row_id)
                if row_id not in self._ids:
                    why = type(error).__name__  # its words may be the row's
                    log.warning("row_unreadable", what=self._what, id=row_id, reason=why)
        if bad or self._ids:
            self._ids = self._ids - good | bad
        return tuple(found)

    def one(self, row: sqlite3.Row, load: Callable[[sqlite3.Row], T]) -> T:
        """What `load` makes of the row. Raises StorageError where that is nothing."""
        for found in self.readable((row,), load):
            return found
        raise StorageError(
            f"{self._what} {row[self._key]} cannot be read: its row is damaged", cure=self._cure
        )

    def gone(self, row_id: int | str) -> None:
        """The row is no longer there."""
        self._ids -= {row_id}

    def problems(self) -> tuple[Problem, ...]:
        """One that names all of them."""
        if not self._ids:
            return ()
        named = ", ".join(f"{self._what} {one}" for one in sorted(self._ids, key=str))
        text = f"left out, since a row of the database is damaged: {named}"
        return (Problem("row_unreadable", text, self._cure),)
