"""Transactions and looks that wait for the thread of their database."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from agentd.errors import StorageError

T = TypeVar("T")


class Waiting(Generic[T]):
    """A transaction or a look that waits; after its run `error` or `result` holds the outcome."""

    __slots__ = ("error", "fn", "result")

    def __init__(self, fn: Callable[[sqlite3.Connection], T]) -> None:
        self.fn = fn
        self.result: T
        self.error: Exception | None = None

    def run(self, conn: sqlite3.Connection) -> None:
        """Run it; it may be run again."""
        self.error = None
        try:
            self.result = self.fn(conn)
        except Exception as error:  # noqa: BLE001 - the caller raises it, in `outcome`
            self.error = error

    def outcome(self, told: Callable[[sqlite3.Error], StorageError]) -> T:
        """The result, or the error raised."""
        if isinstance(self.error, sqlite3.Error):
            raise told(self.error) from self.error
        if self.error is not None:
            raise self.error
        return self.result


def taken(waiting: deque[Waiting[Any]]) -> list[Waiting[Any]]:
    """All that wait, who wait no longer."""
    found = []
    while waiting:
        found.append(waiting.popleft())
    return found
