"""Keeps the conversations in the search index up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec import Struct

from agentd.core.errors import NotFound
from agentd.core.ports import Clock, MemoryIndex, Transcripts
from agentd.core.search import Chunk, Source
from agentd.core.transcript import Row
from agentd.core.turn import SessionKey
from agentd.memory.index.chunking import turns
from agentd.memory.index.transcripts import chunks_of_rows, finished_rows, last_turn, path_of

_BATCH = 400  # rows read at once
_SHORT = 20_000  # characters that may be cut on the event loop
_STALE = -1  # mark of a transcript that was cut by another version


class TranscriptDelta(Struct, frozen=True):
    """How much a session gathers before it is indexed: a number of messages or of bytes, whichever
    is reached first; 0 sets no threshold. Without any threshold each turn is indexed when it ends.
    """

    messages: int = 0
    octets: int = 0

    def is_reached(self, rows: Sequence[Row]) -> bool:
        """Whether these rows have to be indexed now."""
        if not self.messages and not self.octets:
            return True
        said = [row.text for row in rows if row.role.is_spoken]
        enough = self.messages and len(said) >= self.messages
        return bool(enough or (self.octets and sum(map(_octets, said)) >= self.octets))


class SessionIndexer:
    """Adds finished turns to the index, from each session's high-water mark. A transcript that was
    cut by another version is cut again; until then it is found in its old chunks.
    """

    def __init__(
        self,
        index: MemoryIndex,
        store: Transcripts,
        clock: Clock,
        delta: TranscriptDelta | None = None,
        *,
        is_on: bool = True,
    ) -> None:
        """With `is_on` False the next `sync` removes all conversations from the index, down to the
        bytes.
        """
        self.is_on = is_on
        self._index = index
        self._store = store
        self._clock = clock
        self._delta = delta or TranscriptDelta()
        self._lock = asyncio.Lock()
        self._marks: dict[str, int] | None = None
        self._left = 0

    @property
    def left(self) -> int:
        """How many sessions the running `sync` has still to index."""
        return self._left

    async def sync(
        self,
        only: Iterable[SessionKey] | None = None,
        *,
        gather: bool = False,
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Index the new rows of all sessions, or of `only` these. With `gather`, sessions below the
        `TranscriptDelta` wait. `between` is awaited before each session. Raises StorageError.
        """
        if only is not None:
            for session in only if self.is_on else ():
                async with self._lock:
                    await self._follow(session, await self._load_marks(), gather=gather)
            return
        async with self._lock:
            marks = await self._load_marks()
            stored = await self._store.row_counts() if self.is_on else {}
            counts = {path_of(session): rows for session, rows in stored.items()}
            begun_again = {path for path, rows in counts.items() if rows < marks.get(path, 0)}
            await self._forget((marks.keys() - counts.keys()) | begun_again, marks)
            changed = [one for one, rows in stored.items() if rows != marks.get(path_of(one), 0)]
        self._left = len(changed)
        try:
            for session in changed:
                if between is not None:
                    await between()
                async with self._lock:
                    await self._follow(session, await self._load_marks(), gather=gather)
                self._left -= 1
        finally:
            self._left = 0

    async def forget(self, sessions: Iterable[SessionKey]) -> None:
        """Remove sessions from the index, down to the bytes."""
        async with self._lock:
            await self._forget(map(path_of, sessions), await self._load_marks())

    @property
    def is_stale(self) -> bool:
        """Whether some transcripts have still to be cut again."""
        return self._marks is not None and _STALE in self._marks.values()

    def reset(self) -> None:
        """Forget what is known of the index, because the index has changed or been lost."""
        self._marks = None

    async def _load_marks(self) -> dict[str, int]:
        if self._marks is None:
            digests = await self._index.digests(Source.SESSIONS)
            self._marks = {path: _mark(digest) for path, digest in digests.items()}
        return self._marks

    async def _follow(self, session: SessionKey, marks: dict[str, int], *, gather: bool) -> None:
        path = path_of(session)
        try:
            if marks.get(path) == _STALE:
                await self._cut_again(session, marks)
            while True:
                mark = marks.get(path, 0)
                ready, more = await self._after(session, mark)
                waits = gather and not more and mark > 0 and not self._delta.is_reached(ready)
                if not ready or waits:
                    return
                chunks = await self._cut(session, ready)
                await self._index.extend(path, f"{turns.IDENTITY}:{ready[-1].seq}", chunks)
                marks[path] = ready[-1].seq
                if not more:
                    return
        except NotFound:
            await self._forget([path], marks)

    async def _cut_again(self, session: SessionKey, marks: dict[str, int]) -> None:
        """Index a transcript anew in one step, so that no part of it is missing meanwhile."""
        chunks: list[Chunk] = []
        last, more = 0, True
        while more:
            ready, more = await self._after(session, last)
            if ready:
                chunks += await self._cut(session, ready)
                last = ready[-1].seq
        await self._index.replace(path_of(session), f"{turns.IDENTITY}:{last}", chunks)
        marks[path_of(session)] = last

    async def _after(self, session: SessionKey, mark: int) -> tuple[Sequence[Row], bool]:
        """Return the next rows of finished turns, and whether there are more. Raises NotFound."""
        rows = await self._store.rows(session, mark + 1, _BATCH)
        more = len(rows) == _BATCH
        return (rows[: last_turn(rows)] or rows if more else finished_rows(rows)), more

    async def _cut(self, session: SessionKey, rows: Sequence[Row]) -> Sequence[Chunk]:
        zone = self._clock.zone
        if sum(len(row.text) for row in rows) <= _SHORT:
            return chunks_of_rows(session, rows, zone)
        return await asyncio.to_thread(chunks_of_rows, session, rows, zone)

    async def _forget(self, paths: Iterable[str], marks: dict[str, int]) -> None:
        known = [path for path in paths if path in marks]
        if known:
            await self._index.erase(known)
        for path in known:
            del marks[path]


def _mark(digest: str) -> int:
    """Return the number of the last indexed row, from a digest `IDENTITY:ROW`; _STALE if the
    transcript was cut in another way.
    """
    identity, _, last = digest.rpartition(":")
    return int(last) if identity == turns.IDENTITY and last.isdecimal() else _STALE


def _octets(text: str) -> int:
    return len(text.encode(errors="replace"))
