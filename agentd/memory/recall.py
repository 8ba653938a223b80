"""Search and reading for tools and commands: a session finds only what it may see."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Sequence

import structlog
from msgspec.structs import replace

from agentd.core.errors import FileMissing, NotFound, StorageFull, WorkspaceError
from agentd.core.outside import is_marked
from agentd.core.ports import MemoryIndex, NoteReader, Transcripts
from agentd.core.search import (
    OWNER,
    PUBLIC,
    EmptyReason,
    SearchQuery,
    SearchResult,
    SearchShortfall,
    Source,
    audience_of,
    heavier,
    scope_of,
)
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.core.workspace import FACTS_PATH, FileView, Reader
from agentd.memory.facts.keeping import parse_page
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.transcripts import as_lines, path_of, session_at

log = structlog.get_logger()

_OWNER = Reader(SessionKey("recall"), SessionKind.OWNER)
_BEHIND = re.compile("[:@]")  # begins a line, row or version after a path
_PATIENCE = 2.0  # seconds that a search waits for notes to be indexed
_PERHAPS_MISSED = frozenset(  # reasons to be doubted while something is not indexed
    {EmptyReason.NO_MATCH, EmptyReason.NOTHING_INDEXED, EmptyReason.NOTHING_FITS}
)


class MemoryRecall:
    """The Recall: the owner's sessions find everything, others shared notes and what was said in
    their own session, at no more cost than if there were nothing else.
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

    async def search(self, query: SearchQuery, reader: Reader) -> SearchResult:
        """See Recall. A note saved a moment ago is found, if the disk has room to index it. Raises
        StorageError when the index cannot be read.
        """
        wanted = frozenset(Source) if query.sources is None else query.sources
        audience = audience_of(reader.session, reader.kind)
        if audience == PUBLIC:
            wanted -= {Source.SESSIONS}
        if not wanted:
            return SearchResult((), EmptyReason.SCOPE)
        late, epoch = False, self._index.epoch
        is_owner = audience == OWNER
        level = self._indexer.level_notes if is_owner else self._indexer.level_shared
        try:
            async with asyncio.timeout(self._patience):
                await level()
        except TimeoutError:
            late = True
        except StorageFull as error:
            # Search goes on with what is indexed; the indexer itself reports the problem.
            log.warning("notes_not_indexed", reason=error.reason)
            self._indexer.hint()
            late = True
        if not is_owner and not self._indexer.is_sharing_checked:
            return SearchResult((), SearchShortfall.INDEXING)
        found = await self._index.search(replace(query, sources=wanted), audience)
        if self._index.epoch != epoch:
            self._indexer.hint()  # the index was found damaged
        reason = found.reason
        # Others must not learn whether anything of the owner's waits to be indexed.
        if is_owner and (late or (self._indexer.is_behind and reason in _PERHAPS_MISSED)):
            reason = heavier(reason, SearchShortfall.INDEXING)
        return replace(found, reason=reason)

    async def read(self, path: str, reader: Reader) -> FileView:
        """Read a workspace file or a transcript. Raises FileMissing, FileUnreadable,
        PathRefused.
        """
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
        """See Recall. Whole lines are judged, because a mark at the end may be cut off in
        `text`.
        """
        session = session_at(path)
        if session is not None:
            named = await self.has_outside_name([path])
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

    async def has_outside_name(self, places: Sequence[str]) -> bool:
        """See Recall."""
        return await self._workspace.has_outside_name(
            [p for place in places for p in _paths(place)]
        )

    async def _tells_names(self, page: str, first: int, last: int) -> bool:
        """Whether one of these lines of the page of facts refers to a transcript that text from
        outside has named.
        """
        placed = (await parse_page(page)).placed()
        entries = [one.line.entry for one in placed if first <= one.number <= last]
        origins = {entry.origin.session for entry in entries if entry and entry.origin.session}
        return await self.has_outside_name([path_of(session) for session in origins])

    async def _was_said_outside(self, session: SessionKey, first: int, last: int) -> bool:
        if kind_of(session) is not SessionKind.OWNER:
            return True
        try:
            rows = await self._store.rows(session, first, last - first + 1)
        except NotFound:
            return True
        return any(row.source.tainted for row in rows if row.seq <= last)


def _paths(place: str) -> Iterator[str]:
    """Yield the possible paths in a place: a file name may itself end like a line or version."""
    yield place
    yield from (place[: sign.start()] for sign in _BEHIND.finditer(place))
