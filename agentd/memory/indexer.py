"""Keeps the search index level with the notes and the transcripts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from agentd.domain.health import Problem
from agentd.domain.memory import IndexState
from agentd.domain.turn import SessionKey
from agentd.errors import AgentdError
from agentd.memory.notes import NoteIndexer
from agentd.memory.sessions import SessionIndexer
from agentd.ports import Clock, MemoryIndex, SessionStore, Workspace

_EVERY = 30.0  # seconds between looks at everything
_GATHER = (
    0.25  # seconds in which ended turns gather: the index takes many at about the price of one
)

log = structlog.get_logger()


class Indexer:
    """`run` is its long life; everything else works without it, too."""

    def __init__(
        self, index: MemoryIndex, workspace: Workspace, store: SessionStore, clock: Clock
    ) -> None:
        self._index = index
        self._clock = clock
        self._notes = NoteIndexer(index, workspace, clock)
        self._sessions = SessionIndexer(index, store, clock)
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._all_due = True
        self._touched: set[SessionKey] = set()
        self._rebuilding = False
        self._failure: Problem | None = None

    @property
    def is_behind(self) -> bool:
        """Whether something is waiting to be indexed, or is being indexed now."""
        return self._all_due or bool(self._touched) or self._lock.locked()

    async def run(self) -> None:
        """Index what is due now, what was touched soon after, and everything every 30 seconds, until
        cancelled.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            tasks.create_task(self._work())

    def touch(self, session: SessionKey) -> None:
        """A turn of this session has ended."""
        self._touched.add(session)
        self._wake.set()

    async def forget(self, session: SessionKey) -> None:
        """Take a session that was deleted out of the index, down to the bytes. Raises StorageError;
        the next look at everything does it then.
        """
        async with self._lock:
            self._touched.discard(session)
            await self._sessions.forget(session)

    async def sync(self) -> None:
        """Look at all notes and transcripts now. Raises StorageError."""
        self._all_due = True
        await self.wait_idle()

    async def sync_notes(self) -> None:
        """Look at all notes now. Raises StorageError."""
        await self._notes.sync()

    async def rebuild(self) -> None:
        """Empty the index and fill it again. Raises StorageError."""
        async with self._lock:
            self._rebuilding = True
            try:
                await self._index.clear()
                self._notes.reset()
                self._sessions.reset()
                await self._notes.sync()
                await self._sessions.sync()
            finally:
                self._rebuilding = False

    async def wait_idle(self) -> None:
        """Return when nothing is pending, doing what is. Raises StorageError."""
        async with self._lock:
            while self._all_due or self._touched:
                await self._once()

    async def state(self) -> IndexState:
        """The counts, with what is pending here."""
        state = await self._index.state()
        pending = len(self._touched) + int(self._all_due)
        word = "indexing" if self.is_behind else "ready"
        word = "rebuilding" if self._rebuilding else word
        return replace(state, pending=state.pending + pending, state=word)

    def problems(self) -> tuple[Problem, ...]:
        """Files that are left out, and why indexing stands still."""
        failure = (self._failure,) if self._failure else ()
        return (*failure, *self._notes.problems())

    async def _once(self) -> None:
        """Take what is due; what fails stays due."""
        everything, touched = self._all_due, frozenset(self._touched)
        self._all_due = False
        self._touched.clear()
        try:
            if everything:
                await self._notes.sync()
                await self._sessions.sync()
            else:
                await self._sessions.sync(touched)
        except BaseException:
            self._all_due = self._all_due or everything
            self._touched |= touched
            raise
        self._failure = None

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(_EVERY)
            self._all_due = True
            self._wake.set()

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.wait_idle()
            except AgentdError as error:
                # Search goes on with what is indexed; the next tick tries again.
                log.warning("indexing_failed", reason=error.reason)
                self._failure = Problem("indexing_failed", error.message, error.cure)
            await self._wake.wait()
            if not self._all_due:
                await self._clock.sleep(_GATHER)
