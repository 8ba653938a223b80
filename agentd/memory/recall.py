"""Search and reading, as tools and commands use them: a session finds only what it may."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import structlog

from agentd.core.errors import FileMissing, NotFound, StorageFull, WorkspaceError
from agentd.core.outside import is_marked
from agentd.core.ports import MemoryIndex, NoteReader, Transcripts
from agentd.core.search import (
    OWNER,
    PUBLIC,
    EmptyReason,
    Found,
    Lack,
    SearchQuery,
    Source,
    audience_of,
    heavier,
    scope_of,
)
from agentd.core.turn import Kind, SessionKey, kind_of
from agentd.core.workspace import FACTS_PATH, FileView, Reader
from agentd.memory.facts.keeping import parsed
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.transcripts import as_lines, path_of, session_at

log = structlog.get_logger()

_OWNER = Reader(SessionKey("recall"), Kind.MAIN)
_BEHIND = re.compile("[:@]")  # what begins a line, a row or a version behind a path
_PATIENCE = 2.0  # seconds that a search waits for notes to be indexed
_PERHAPS_MISSED = frozenset(  # for what is not indexed yet
    {EmptyReason.NO_MATCH, EmptyReason.NOTHING_INDEXED, EmptyReason.NOTHING_FITS}
)


class MemoryRecall:
    """The owner's sessions find everything, others shared notes and what was said in themselves, with no
    more work for that than if there were nothing else.
    """

    def __init__(
        self,
        index: MemoryIndex,
        indexer: Indexer,
        store: Transcripts,
        workspace: NoteReader,
        patience: float = _PATIENCE,
    ) -> None:
        self._index = index
        self._indexer = indexer
        self._store = store
        self._workspace = workspace
        self._patience = patience

    async def search(self, query: SearchQuery, reader: Reader) -> Found:
        """The best hits first. A note saved a moment ago is found, where there is room to index it.
        Raises StorageError when what is indexed cannot be read.
        """
        wanted = frozenset(Source) if query.sources is None else query.sources
        audience = audience_of(reader.session, reader.kind)
        if audience == PUBLIC:
            wanted -= {Source.SESSIONS}
        if not wanted:
            return Found((), EmptyReason.SCOPE)
        late, epoch = False, self._index.epoch
        is_owner = audience == OWNER
        level = self._indexer.level_notes if is_owner else self._indexer.level_shared
        try:
            async with asyncio.timeout(self._patience):
                await level()
        except TimeoutError:
            late = True
        except StorageFull as error:
            # What is indexed is found all the same; the indexer itself tells that it stands still.
            log.warning("notes_not_indexed", reason=error.reason)
            self._indexer.hint()
            late = True
        if not is_owner and not self._indexer.is_sharing_checked:
            return Found((), Lack.INDEXING)
        found = await self._index.search(replace(query, sources=wanted), audience)
        if self._index.epoch != epoch:
            self._indexer.hint()  # it was found damaged
        reason = found.reason
        # Whether anything of the owner's waits to be indexed must not show to others.
        if is_owner and (late or (self._indexer.is_behind and reason in _PERHAPS_MISSED)):
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

    async def is_outside(self, path: str, first: int, last: int, text: str) -> bool:
        """See Recall. The lines are judged whole: a mark stands at the end, which a cut may hide."""
        session = session_at(path)
        if session is not None:
            named = await self.names_outside([path])
            return named or await self._was_said_outside(session, first, last)
        if path.startswith("@") or is_marked(text):
            return True
        (found,) = await self._workspace.look([path], _OWNER)
        if isinstance(found, WorkspaceError):
            return True
        if (
            path == FACTS_PATH
            and "<!--" in text
            and await self._tells_names(found.text, first, last)
        ):
            return True
        whole = found.text.split("\n")[first - 1 : last]
        return any(await self._workspace.outside(path, [*whole, *text.split("\n")]))

    async def names_outside(self, places: Sequence[str]) -> bool:
        """See Recall."""
        return await self._workspace.names_outside([p for place in places for p in _paths(place)])

    async def _tells_names(self, page: str, first: int, last: int) -> bool:
        """Whether one of these lines of the page of facts names a transcript as text from outside has."""
        placed = (await parsed(page)).placed()
        entries = [one.line.entry for one in placed if first <= one.number <= last]
        origins = {entry.origin.session for entry in entries if entry and entry.origin.session}
        return await self.names_outside([path_of(session) for session in origins])

    async def _was_said_outside(self, session: SessionKey, first: int, last: int) -> bool:
        if kind_of(session) is not Kind.MAIN:
            return True
        try:
            rows = await self._store.rows(session, first, last - first + 1)
        except NotFound:
            return True
        return any(row.source.tainted for row in rows if row.seq <= last)


def _paths(place: str) -> Iterator[str]:
    """What of a place may be its path: names may end like lines and versions do."""
    yield place
    yield from (place[: sign.start()] for sign in _BEHIND.finditer(place))
