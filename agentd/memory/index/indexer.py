"""Keeps the search index level with the notes and the transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from enum import Flag, auto

import structlog

from agentd.core.errors import AgentdError
from agentd.core.health import Problem
from agentd.core.ports import Clock, MemoryIndex, Transcripts, Workspace
from agentd.core.search import IndexState
from agentd.core.turn import SessionKey
from agentd.memory.index.chunks import chunker_of
from agentd.memory.index.notes import NoteIndexer
from agentd.memory.index.session_indexer import SessionIndexer, TranscriptDelta
from agentd.memory.settings import IndexSettings

log = structlog.get_logger()


_EVERY = 30.0  # seconds between looks at everything
_GATHER = 0.25  # seconds in which turns and notes gather: many are taken at about the price of one
_RESTS = (
    9  # times as long as a look took, notes that change again and again wait for the next one: who
)
_LONGEST = 2.0  # searches has them looked at before; seconds at most


class _Due(Flag):
    """What is to be looked at."""

    NOTES = auto()
    GATHERED = auto()  # all sessions but those that gather what is new
    SESSIONS = auto()  # all sessions
    REGULAR = NOTES | GATHERED
    EVERYTHING = NOTES | SESSIONS


class Indexer:
    """`run` is its long life; everything else works without it, too."""

    def __init__(
        self,
        index: MemoryIndex,
        workspace: Workspace,
        store: Transcripts,
        clock: Clock,
        settings: IndexSettings | None = None,
        shipped: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """`shipped` are the lines of notes as they come with agentd, by path."""
        settings = settings or IndexSettings()
        delta = TranscriptDelta(settings.index_delta_messages, settings.index_delta_bytes)
        self._index = index
        self._clock = clock
        self._notes = NoteIndexer(
            index, workspace, clock, chunker_of(settings), shipped, aging=settings.extras()
        )
        self._sessions = SessionIndexer(
            index, store, clock, delta, is_on=settings.index_transcripts
        )
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._due = _Due.EVERYTHING
        self._touched: set[SessionKey] = set()
        self._rebuilding = False
        self._epoch = index.epoch
        self._failure: Problem | None = None

    @property
    def is_behind(self) -> bool:
        """Whether something is waiting to be indexed, or is being indexed now."""
        return bool(self._due) or bool(self._touched) or self._lock.locked()

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

    def hint(self) -> None:
        """Notes may have changed: look soon rather than at the next regular look."""
        self._due |= _Due.NOTES
        self._wake.set()

    def adopt(self, settings: IndexSettings) -> None:
        """Cut notes, and index transcripts or not, as these settings say; notes that were cut in
        another way are found until their turn has come.
        """
        self._notes.adopt(chunker_of(settings))
        if self._sessions.is_on != settings.index_transcripts:
            self._sessions.is_on = settings.index_transcripts
            self._due |= _Due.SESSIONS
        self.hint()

    async def forget(self, session: SessionKey) -> None:
        """Take a session that was deleted out of the index, down to the bytes. Raises StorageError;
        the next look at everything does it then.
        """
        async with self._lock:
            self._touched.discard(session)
            await self._sessions.forget([session])

    @asynccontextmanager
    async def without(self, sessions: Collection[SessionKey]) -> AsyncIterator[None]:
        """The sessions are out of the index, down to the bytes, while the block takes rows from them;
        then what is left is indexed again. A start after a crash does that by itself. Raises
        StorageError.
        """
        async with self._lock:
            await self._sessions.forget(sessions)
            try:
                yield
            finally:
                self._touched.update(sessions)
                self._wake.set()

    async def sync(self) -> None:
        """Look at all notes and transcripts now. Raises StorageError."""
        self._due = _Due.EVERYTHING
        await self.wait_idle()

    async def sync_notes(self) -> None:
        """Look at all notes now. Raises StorageError."""
        await self._notes.sync()

    async def level_notes(self) -> None:
        """`sync_notes` where it is cheap, or where a change was told or may have gone untold since the
        last look. Raises StorageError.
        """
        await self._notes.level()

    async def level_shared(self) -> None:
        """Take in what has changed of the notes that groups may see, however much there is of others.
        Raises StorageError.
        """
        await self._notes.level_shared()

    @property
    def is_sharing_checked(self) -> bool:
        """Whether the index gives groups no more than the workspace does."""
        return self._notes.is_sharing_checked

    def trust(self, mark: Callable[[], Hashable | None]) -> None:
        """Let `level_notes` rely on `mark`: another value means that a change was told since, None that
        changes may go untold. Without it every one is a look.
        """
        self._notes.freshness.trust(mark)

    async def rebuild(self, *, vectors: bool = True) -> None:
        """Index everything again; until a file's turn comes it is found as it was. What a crash or an
        error cuts short, the next start or look goes on with. Without `vectors` it returns as soon as all
        is found by words. Raises StorageError.
        """
        self._rebuilding = True
        try:
            async with self._lock:
                await self._index.verify()
                await self._index.outdate()
                self._reset()
                self._due = _Due.EVERYTHING
                await self._once()
            if vectors:
                await self._index.settle()  # which may take long, and keeps no turn waiting
        finally:
            self._rebuilding = False

    async def wait_idle(self) -> None:
        """Return when nothing is pending, doing what is. Raises StorageError."""
        async with self._lock:
            while self._due or self._touched:
                await self._once()

    async def state(self) -> IndexState:
        """The counts, with what is pending here."""
        state = await self._index.state()
        left = self._notes.left + self._sessions.left
        pending = len(self._touched) + int(bool(self._due)) + left
        word = "indexing" if self.is_behind else state.state
        again = self._rebuilding or self._notes.is_stale or self._sessions.is_stale
        word = "rebuilding" if again else word
        return replace(state, pending=state.pending + pending, state=word)

    def problems(self) -> tuple[Problem, ...]:
        """Folders that are left out, and why indexing stands still."""
        failure = (self._failure,) if self._failure else ()
        return (*failure, *self._notes.problems())

    async def _once(self) -> None:
        """Take what is due; what fails stays due."""
        if _Due.NOTES in self._due:
            await self._index.verify()
        self._begin_anew_if_lost()
        due, self._due = self._due, _Due(0)
        try:
            await self._follow()
            if _Due.NOTES in due:
                await self._notes.sync(self._follow)
            if due & (_Due.SESSIONS | _Due.GATHERED):
                gather = _Due.SESSIONS not in due
                await self._sessions.sync(gather=gather, between=self._follow)
        except BaseException:
            self._due |= due
            raise
        self._failure = None
        if _Due.EVERYTHING in due and self._epoch == self._index.epoch:
            await self._index.complete()

    async def _follow(self) -> None:
        """Index the sessions whose turns have ended, before anything that takes longer."""
        touched = frozenset(self._touched)
        self._touched.clear()
        try:
            await self._sessions.sync(touched, gather=True)
        except BaseException:
            self._touched |= touched
            raise

    def _begin_anew_if_lost(self) -> None:
        """Index everything again when the index was found damaged, and emptied."""
        if self._epoch != self._index.epoch:
            self._epoch = self._index.epoch
            self._reset()
            self._due = _Due.EVERYTHING

    def _reset(self) -> None:
        self._notes.reset()
        self._sessions.reset()

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(_EVERY)
            self._due |= _Due.REGULAR
            self._wake.set()

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            begun = self._clock.monotonic()
            try:
                async with self._lock:
                    if self._due or self._touched:
                        await self._once()  # what comes meanwhile has its rest first
            except AgentdError as error:
                # Search goes on with what is indexed; the next tick tries again.
                log.warning("indexing_failed", reason=error.reason)
                self._failure = Problem("indexing_failed", error.message, error.cure)
            except Exception as error:
                # A fault of ours, which must not be the end of all search; it is tried again, too.
                log.exception("indexing_failed")
                text = f"what has changed is not searched yet: {type(error).__name__}"
                self._failure = Problem("indexing_failed", text, "see `agentd logs`")
            rest = min(_RESTS * (self._clock.monotonic() - begun), _LONGEST)
            await self._wake.wait()
            if not self._due & (_Due.SESSIONS | _Due.GATHERED):
                await self._gather(rest)

    async def _gather(self, rest: float) -> None:
        """Let more come, before a look at notes alone for as long as that rests."""
        until = self._clock.monotonic() + rest
        await self._clock.sleep(_GATHER)
        while not self._touched and self._clock.monotonic() < until:
            await self._clock.sleep(_GATHER)
