"""Search and reading, as tools and commands use them: each kind of session finds only its own."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

from agentd.domain.memory import Found, Source
from agentd.domain.turn import Kind
from agentd.domain.workspace import FileView, Reader
from agentd.errors import FileMissing, NotFound
from agentd.memory.indexer import Indexer
from agentd.memory.transcript import as_lines, session_at
from agentd.ports import MemoryIndex, SessionStore, Workspace

_PATIENCE = 2.0  # seconds that a search waits for notes to be indexed


class MemoryRecall:
    """The owner's sessions find everything, others the notes that they may read."""

    def __init__(
        self, index: MemoryIndex, indexer: Indexer, store: SessionStore, workspace: Workspace
    ) -> None:
        self._index = index
        self._indexer = indexer
        self._store = store
        self._workspace = workspace

    async def search(
        self, query: str, kind: Kind, limit: int, sources: frozenset[Source] | None = None
    ) -> Found:
        """The best hits first; of equal ones notes before transcripts. A note saved a moment ago is
        found. Raises StorageError.
        """
        wanted = frozenset(Source) if sources is None else sources
        if kind is not Kind.MAIN:
            wanted &= {Source.NOTES}
        if not wanted:
            return Found((), "no_match")
        late = False
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._indexer.sync_notes()
        except TimeoutError:
            late = True
        owner = kind is Kind.MAIN
        found = await self._index.search(query, owner=owner, limit=limit, sources=wanted)
        hits = sorted(
            found.hits, key=lambda hit: (-round(hit.score, 9), hit.chunk.source is not Source.NOTES)
        )
        reason = found.reason
        # Others find notes alone, which are level now: the owner's conversations must not show.
        behind = owner and self._indexer.is_behind
        if late or (behind and reason in {"no_match", "nothing_indexed"}):
            reason = "indexing"
        return replace(found, hits=tuple(hits), reason=reason)

    async def read(self, path: str, reader: Reader) -> FileView:
        """A workspace file, or a transcript. Raises FileMissing, FileUnreadable, PathRefused."""
        session = session_at(path)
        if session is None:
            return await self._workspace.read(path, reader)
        msg = f"there is no file {path}"
        if reader.kind is not Kind.MAIN:
            raise FileMissing(msg)
        try:
            rows = await self._store.rows(session)
        except NotFound:
            raise FileMissing(msg) from None
        text = await asyncio.to_thread(as_lines, rows)
        return FileView(path, text, hashlib.sha256(text.encode()).hexdigest())
