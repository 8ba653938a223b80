"""Queues of turns, one per session: which turn may run, and how a turn is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct, field

from agentd.core.errors import QueueFull
from agentd.core.event import NoticeGiven, TurnStarted
from agentd.core.ports import TurnAudience
from agentd.core.turn import Receipt, SessionKey, Turn, TurnRequest
from agentd.engine.outage import OutagePlace


class Interrupted(Exception):
    """Raised in a turn that the user wants to end: control flow of the engine, never shown."""


class Interrupt:
    """The user's wish to stop a turn. It ends the turn's waits for the model and for the user, but
    never a write half done.
    """

    def __init__(self) -> None:
        self.requested = False
        self._guards: set[asyncio.Timeout] = set()

    def request(self) -> None:
        """End every guarded wait of the turn now, and every later one at once. A second request
        changes nothing.
        """
        if self.requested:
            return  # a timeout that is expiring cannot be rescheduled
        self.requested = True
        for guard in self._guards:
            guard.reschedule(0)

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Guard a block: it ends with Interrupted as soon as the user wants to stop the turn.

        Raises Interrupted, at once if the user wanted to stop before the block.
        """
        if self.requested:
            raise Interrupted
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._guards.add(scope)
                yield
        except TimeoutError:
            if scope.expired():
                raise Interrupted from None
            raise
        finally:
            self._guards.discard(scope)


class SessionQueue:
    """Decides which turns may run: one at a time for each session, a limited number over all, in
    order of arrival.

    Whatever touches a session's context holds a place in its queue meanwhile. Messages of the user
    also form a line, in which they stay until they are answered: a message that waits for the
    model's service lets other turns run, but keeps its place.
    """

    def __init__(self, max_queued: int, max_running: int) -> None:
        self._max_queued = max_queued
        self._slots = asyncio.Semaphore(max_running)
        self._locks: dict[SessionKey, asyncio.Lock] = {}
        self._lines: dict[SessionKey, asyncio.Lock] = {}
        self._inside: dict[SessionKey, int] = {}

    def queued(self, session: SessionKey) -> int:
        """Return how many turns of the session wait behind the running one."""
        return max(0, self._inside.get(session, 0) - 1)

    def is_busy(self, session: SessionKey) -> bool:
        """Whether any turn of the session runs or waits."""
        return self._inside.get(session, 0) > 0

    def is_held(self, session: SessionKey) -> bool:
        """Whether a turn of the session runs, or other work that must be alone in the session."""
        return session in self._locks and self._locks[session].locked()

    def reserve(self, session: SessionKey) -> None:
        """Take a place in the session's queue, to be given back by `release`.

        Raises QueueFull when no more may wait for this session.
        """
        if self._inside.get(session, 0) > self._max_queued:
            raise QueueFull(
                f"{self._max_queued} messages already wait in session {session!r}.",
                cure="Wait for an answer, or cancel the running turn.",
            )
        self.enter(session)

    def enter(self, session: SessionKey) -> None:
        """Take a place in the session's queue however many wait, for a turn that was accepted
        before or for work that the owner asks for.
        """
        self._inside[session] = self._inside.get(session, 0) + 1

    def release(self, session: SessionKey) -> None:
        """Give a place in the session's queue back."""
        self._inside[session] -= 1
        if not self._inside[session]:
            del self._inside[session]
            self._locks.pop(session, None)
            self._lines.pop(session, None)

    @asynccontextmanager
    async def in_line(self, session: SessionKey, interrupt: Interrupt) -> AsyncIterator[None]:
        """Run a block at the head of the session's line, which keeps the user's messages in order:
        who is there is answered next, also while he waits for the model's service. The caller has a
        place in the queue. Raises Interrupted if the user wants to stop before that.
        """
        line = self._lines.setdefault(session, asyncio.Lock())
        async with interrupt.guard():
            await line.acquire()
        try:
            yield
        finally:
            line.release()

    @asynccontextmanager
    async def hold(self, session: SessionKey) -> AsyncIterator[None]:
        """Run a block alone in the session and as one of at most `max_running` over all, first come
        first served. The caller has a place in the queue.
        """
        lock = self._locks.setdefault(session, asyncio.Lock())
        async with lock, self._slots:
            yield

    @asynccontextmanager
    async def visit(self, session: SessionKey) -> AsyncIterator[None]:
        """Take a place in the session's queue however many wait, and `hold` the session during the
        block.
        """
        self.enter(session)
        try:
            async with self.hold(session):
                yield
        finally:
            self.release(session)


class Submission(Struct):
    """A turn on its way. `ended` receives the ended turn, `sink` gets its events, and `place` is
    its place in the line while the model's service is away; None if it does not wait.
    """

    request: TurnRequest
    receipt: Receipt
    sink: TurnAudience
    ended: asyncio.Future[Turn]
    place: OutagePlace | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)
    _is_announced: bool = False

    def announce(self) -> None:
        """Tell the watchers, once, that work on the message has begun."""
        if self._is_announced:
            return
        self._is_announced = True
        session = self.request.session
        self.sink.emit(
            TurnStarted(session, self.request.message_id, self.request.text, self.request.images)
        )
        if count := self.receipt.redacted:
            self.sink.emit(NoticeGiven(session, _not_kept(count), "redacted"))


def _not_kept(count: int) -> str:
    keys = "a key" if count == 1 else f"{count} keys"
    return (
        f"Your message holds {keys}. The model sees it in this turn; what is kept says [secret:…] "
        "instead. A key that others may have seen should be replaced."
    )


class Ticket:
    """A submitted turn that any number of callers may wait for."""

    def __init__(self, receipt: Receipt, turn: asyncio.Future[Turn]) -> None:
        self.receipt = receipt
        self._turn = turn

    async def wait(self) -> Turn:
        """Return the turn when it has ended. Cancelling the caller does not affect the turn. Raises
        ShuttingDown if the turn was put aside for the next start, StorageError if its end could not
        be stored.
        """
        return await asyncio.shield(self._turn)
