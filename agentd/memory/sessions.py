"""The part of the index that holds transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from agentd.domain.memory import Source
from agentd.domain.turn import SessionKey
from agentd.errors import NotFound
from agentd.memory.transcript import chunks_of_rows, finished, last_turn, path_of
from agentd.ports import Clock, MemoryIndex, SessionStore

_BATCH = 400  # rows read at once


class SessionIndexer:
    """Adds finished turns to the index, each session from its high-water mark."""

    def __init__(self, index: MemoryIndex, store: SessionStore, clock: Clock) -> None:
        self._index = index
        self._store = store
        self._clock = clock
        self._lock = asyncio.Lock()
        self._marks: dict[str, int] | None = None

    async def sync(self, only: Iterable[SessionKey] | None = None) -> None:
        """Look at all sessions, or at these alone. Raises StorageError."""
        async with self._lock:
            marks = await self._known()
            if only is not None:
                for session in only:
                    await self._follow(session, marks)
                return
            infos = await self._store.sessions()
            gone = marks.keys() - {path_of(info.key) for info in infos}
            await self._forget(gone, marks)
            for info in infos:
                mark = marks.get(path_of(info.key), 0)
                if info.rows < mark:  # deleted and begun again
                    await self._forget([path_of(info.key)], marks)
                if info.rows != mark:
                    await self._follow(info.key, marks)

    async def forget(self, session: SessionKey) -> None:
        """Take a session that was deleted out of the index, down to the bytes."""
        async with self._lock:
            await self._forget([path_of(session)], await self._known())

    def reset(self) -> None:
        """The index was emptied: begin again."""
        self._marks = None

    async def _known(self) -> dict[str, int]:
        if self._marks is None:
            digests = await self._index.digests(Source.SESSIONS)
            self._marks = {path: int(seq) for path, seq in digests.items()}
        return self._marks

    async def _follow(self, session: SessionKey, marks: dict[str, int]) -> None:
        path = path_of(session)
        while True:
            mark = marks.get(path, 0)
            try:
                rows = await self._store.rows(session, mark + 1, _BATCH)
            except NotFound:
                await self._forget([path], marks)
                return
            more = len(rows) == _BATCH
            ready = rows[: last_turn(rows)] or rows if more else finished(rows)
            if not ready:
                return
            chunks = chunks_of_rows(session, ready, self._clock.zone)
            last = ready[-1].seq
            await self._index.extend(path, str(last), chunks)
            marks[path] = last
            if not more:
                return

    async def _forget(self, paths: Iterable[str], marks: dict[str, int]) -> None:
        known = [path for path in paths if path in marks]
        if known:
            await self._index.erase(known)
        for path in known:
            del marks[path]
