"""Keeps the search index up to date with the notes and the transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Mapping
from contextlib import asynccontextmanager
from enum import Flag, auto

import structlog
from msgspec.structs import replace

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


_EVERY = 30.0  # seconds between scans of everything
_GATHER = 0.25  # seconds to collect changes: indexing many costs about as much as one
_RESTS = 9  # the next scan of notes alone waits so many times the last one's duration,
_LONGEST = 2.0  # but at most so many seconds; a search before then scans the notes itself


class _Due(Flag):
    """What the next pass has to scan."""

    NOTES = auto()
    GATHERED = auto()  # all sessions except those that have gathered too few new messages
    SESSIONS = auto()  # all sessions
    REGULAR = NOTES | GATHERED
    EVERYTHING = NOTES | SESSIONS


class Indexer:
    """Indexes changed notes and transcripts: in the background (`run`, until cancelled), and at
    once when one of the other methods asks for it, also without `run`.
    """

    def __init__(
        self,
        index: MemoryIndex,
        workspace: Workspace,
        store: Transcripts,
        clock: Clock,
        settings: IndexSettings | None = None,
        shipped: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """`shipped` maps the paths of notes that are shipped with agentd to their lines as
        shipped.
        """
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
        """Whether anything waits to be indexed, or is being indexed."""
        return bool(self._due) or bool(self._touched) or self._lock.locked()

    async def run(self) -> None:
        """Index in the background until cancelled: what is due at once, touched sessions shortly
        after, and everything every 30 seconds.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            tasks.create_task(self._work())

    def touch(self, session: SessionKey) -> None:
        """Have the session indexed soon, because one of its turns has ended."""
        self._touched.add(session)
        self._wake.set()

    def hint(self) -> None:
        """Have the notes scanned soon, because they may have changed; a change that a scan has
        found before then needs no other.
        """
        self._due |= _Due.NOTES
        self._wake.set()

    def adopt(self, settings: IndexSettings) -> None:
        """Apply new settings for cutting notes and for indexing transcripts. Notes that were cut in
        another way are still found until they are cut again.
        """
        self._notes.adopt(chunker_of(settings))
        if self._sessions.is_on != settings.index_transcripts:
            self._sessions.is_on = settings.index_transcripts
            self._due |= _Due.SESSIONS
        self.hint()

    async def forget(self, session: SessionKey) -> None:
        """Remove a deleted session from the index, down to the bytes. Raises StorageError; then the
        next scan of all sessions removes it.
        """
        async with self._lock:
            self._touched.discard(session)
            await self._sessions.forget([session])

    @asynccontextmanager
    async def without(self, sessions: Collection[SessionKey]) -> AsyncIterator[None]:
        """Keep the sessions out of the index, down to the bytes, while the block deletes rows of
        them; index afterwards what is left. After a crash the next start does the same by itself.
        Raises StorageError.
        """
        async with self._lock:
            await self._sessions.forget(sessions)
            try:
                yield
            finally:
                self._touched.update(sessions)
                self._wake.set()

    async def sync(self) -> None:
        """Scan and index all notes and transcripts now. Raises StorageError."""
        self._due = _Due.EVERYTHING
        await self.wait_idle()

    async def level_notes(self) -> None:
        """Scan and index all notes if a scan is cheap, or if notes have changed, or may have
        changed unnoticed, since the last scan. Raises StorageError.
        """
        await self._notes.level()

    async def level_shared(self) -> None:
        """Index the changes of the notes that groups may see, without scanning the others. Raises
        StorageError.
        """
        await self._notes.level_shared()

    @property
    def is_sharing_checked(self) -> bool:
        """Whether the index shows groups no more than the workspace does."""
        return self._notes.is_sharing_checked

    def trust(self, mark: Callable[[], Hashable | None]) -> None:
        """Let `level_notes` rely on `mark`, which returns a new value after each noticed change,
        and None while changes may go unnoticed. Without it, `level_notes` always scans.
        """
        self._notes.freshness.trust(mark)

    async def rebuild(self, *, vectors: bool = True) -> None:
        """Index everything again; until a file is indexed anew it is found in its old form. After a
        crash or an error the next start or scan continues. Without `vectors` return as soon as
        everything is found by words. Raises StorageError.
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
                await self._index.settle()  # may take long, and delays no turn
        finally:
            self._rebuilding = False

    async def wait_idle(self) -> None:
        """Index everything that is pending, and return. Raises StorageError."""
        async with self._lock:
            while self._due or self._touched:
                await self._once()

    async def state(self) -> IndexState:
        """Return the state of the index, including what is pending here."""
        state = await self._index.state()
        left = self._notes.left + self._sessions.left
        pending = len(self._touched) + int(bool(self._due)) + left
        word = "indexing" if self.is_behind else state.state
        again = self._rebuilding or self._notes.is_stale or self._sessions.is_stale
        word = "rebuilding" if again else word
        return replace(state, pending=state.pending + pending, state=word)

    def problems(self) -> tuple[Problem, ...]:
        """Return the folders that are not indexed, and why indexing has failed."""
        failure = (self._failure,) if self._failure else ()
        return (*failure, *self._notes.problems())

    async def _once(self) -> None:
        """Index what is due; whatever fails stays due."""
        if _Due.NOTES in self._due:
            await self._index.verify()
        self._begin_anew_if_lost()
        due, self._due = self._due, _Due(0)
        try:
            await self._follow()
            if _Due.NOTES in due:
                is_hint = due == _Due.NOTES  # which may come after the scan of a search
                await (self._notes.level if is_hint else self._notes.sync)(self._follow)
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
        """Index everything again if the index was found damaged and was emptied."""
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
                        await self._once()  # changes during this pass wait for the rest
            except AgentdError as error:
                # Search goes on with what is indexed; the next tick tries again.
                log.warning("indexing_failed", reason=error.reason)
                self._failure = Problem("indexing_failed", error.message, error.cure)
            except Exception as error:
                # A bug must not end all search; the next tick tries again, too.
                log.exception("indexing_failed")
                text = f"what has changed is not searched yet: {type(error).__name__}"
                self._failure = Problem("indexing_failed", text, "see `agentd logs`")
            rest = min(_RESTS * (self._clock.monotonic() - begun), _LONGEST)
            await self._wake.wait()
            if not self._due & (_Due.SESSIONS | _Due.GATHERED):
                await self._gather(rest)

    async def _gather(self, rest: float) -> None:
        """Wait for further changes: briefly, or for `rest` seconds if only notes are due."""
        until = self._clock.monotonic() + rest
        await self._clock.sleep(_GATHER)
        while not self._touched and self._clock.monotonic() < until:
            await self._clock.sleep(_GATHER)
