"""One turn at a time for each session, a limited number over all, in order of arrival.

Whatever touches a session's context holds its lane meanwhile. Messages of the user form a line besides,
which they keep until they are answered: one that waits for the model's service leaves the lane to others
but not its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentd.domain.turn import SessionKey
from agentd.errors import QueueFull


class Lanes:
    """Who may run."""

    def __init__(self, max_queued: int, max_running: int) -> None:
        self._max_queued = max_queued
        self._slots = asyncio.Semaphore(max_running)
        self._locks: dict[SessionKey, asyncio.Lock] = {}
        self._lines: dict[SessionKey, asyncio.Lock] = {}
        self._inside: dict[SessionKey, int] = {}

    def queued(self, session: SessionKey) -> int:
        """How many wait behind the one that runs."""
        return max(0, self._inside.get(session, 0) - 1)

    def is_busy(self, session: SessionKey) -> bool:
        """Whether anything runs or waits."""
        return self._inside.get(session, 0) > 0

    def is_held(self, session: SessionKey) -> bool:
        """Whether anything runs in the lane."""
        return session in self._locks and self._locks[session].locked()

    def reserve(self, session: SessionKey) -> None:
        """Take a place in the queue, to be given back by `release`.

        Raises QueueFull when no more may wait for this session.
        """
        if self._inside.get(session, 0) > self._max_queued:
            raise QueueFull(
                f"{self._max_queued} messages already wait in session {session!r}.",
                cure="Wait for an answer, or cancel the running turn.",
            )
        self.enter(session)

    def enter(self, session: SessionKey) -> None:
        """Take a place however many wait: for what was accepted before, or is the owner's wish."""
        self._inside[session] = self._inside.get(session, 0) + 1

    def release(self, session: SessionKey) -> None:
        """Give a place back."""
        self._inside[session] -= 1
        if not self._inside[session]:
            del self._inside[session]
            self._locks.pop(session, None)
            self._lines.pop(session, None)

    def line(self, session: SessionKey) -> asyncio.Lock:
        """Of the user's messages in the session, for one with a place: who has it is the next."""
        return self._lines.setdefault(session, asyncio.Lock())

    @asynccontextmanager
    async def hold(self, session: SessionKey) -> AsyncIterator[None]:
        """The session's lane and one of the running places, first come first served, for one with a
        place in the queue.
        """
        lock = self._locks.setdefault(session, asyncio.Lock())
        async with lock, self._slots:
            yield

    @asynccontextmanager
    async def visit(self, session: SessionKey) -> AsyncIterator[None]:
        """Hold the lane from a place that is taken for it, however many wait."""
        self.enter(session)
        try:
            async with self.hold(session):
                yield
        finally:
            self.release(session)
