"""Search and reading, as tools and commands use them: a session finds only what it may."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

from agentd.domain.memory import OWNER, PUBLIC, Found, Source, audience_of, scope_of
from agentd.domain.search import EmptyReason, Lack, SearchQuery, heavier
from agentd.domain.workspace import FileView, Reader
from agentd.errors import FileMissing, NotFound
from agentd.memory.indexer import Indexer
from agentd.memory.transcript import as_lines, session_at
from agentd.ports import MemoryIndex, SessionStore, Workspace

_PATIENCE = 2.0  # seconds that a search waits for notes to be indexed
_PERHAPS_MISSED = frozenset(  # for what is not indexed yet
    {EmptyReason.NO_MATCH, EmptyReason.NOTHING_INDEXED, EmptyReason.NOTHING_FITS}
)


class MemoryRecall:
    """The owner's sessions find everything, others shared notes and what was said in themselves."""

    def __init__(
        self,
        index: MemoryIndex,
        indexer: Indexer,
        store: SessionStore,
        workspace: Workspace,
        patience: float = _PATIENCE,
    ) -> None:
        self._index = index
        self._indexer = indexer
        self._store = store
        self._workspace = workspace
        self._patience = patience

    async def search(self, query: SearchQuery, reader: Reader) -> Found:
        """The best hits first. A note saved a moment ago is found. Raises StorageError."""
        wanted = frozenset(Source) if query.sources is None else query.sources
        audience = audience_of(reader.session, reader.kind)
        if audience == PUBLIC:
            wanted -= {Source.SESSIONS}
        if not wanted:
            return Found((), EmptyReason.SCOPE)
        late, epoch = False, self._index.epoch
        try:
            async with asyncio.timeout(self._patience):
                await self._indexer.level_notes()
        except TimeoutError:
            late = True
        found = await self._index.search(replace(query, sources=wanted), audience)
        if self._index.epoch != epoch:
            self._indexer.hint()  # it was found damaged
        reason = found.reason
        # Notes are level now; whether the owner's conversations are must not show to others.
        behind = audience == OWNER and self._indexer.is_behind
        if late or (behind and reason in _PERHAPS_MISSED):
            reason = heavier(reason, Lack.INDEXING)
        return replace(found, reason=reason)

    async def read(self, path: str, reader: Reader) -> FileView:
        """A workspace file, or a transcript. Raises FileMissing, FileUnreadable, PathRefused."""
        session = session_at(path)
        if session is None:
            return await self._workspace.read(path, reader)
        msg = f"there is no file {path}"
        if not audience_of(reader.session, reader.kind).sees(scope_of(session)):
            raise FileMissing(msg)
        try:
            rows = await self._store.rows(session)
        except NotFound:
            raise FileMissing(msg) from None
        text = await asyncio.to_thread(as_lines, rows)
        return FileView(path, text, hashlib.sha256(text.encode()).hexdigest())
