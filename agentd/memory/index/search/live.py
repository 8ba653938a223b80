"""The MemoryIndex: a durable store, mirrors in memory for searching, and embedders.

numpy is first imported on the mirrors' thread: a daemon that is never asked to search does not load
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Self

import structlog
from msgspec.structs import replace

from agentd.core.errors import AgentdError, StorageCorrupt
from agentd.core.health import Problem
from agentd.core.ports import ChunkStore, Clock
from agentd.core.redaction import Redactor
from agentd.core.search import (
    OWNER,
    Audience,
    Chunk,
    EmptyReason,
    Entry,
    IndexState,
    LinePatch,
    SearchQuery,
    SearchResult,
    SearchShortfall,
    Source,
    heavier,
)
from agentd.memory.index.search import words
from agentd.memory.index.search.audiences import Mirrors
from agentd.memory.index.search.backfill import Backfill, ChunkBacklog
from agentd.memory.index.search.chain import EmbedderChain
from agentd.memory.index.search.hits import hit_of
from agentd.memory.index.search.mirror_file import LEAST
from agentd.memory.index.search.patient_embedder import PatientEmbedder
from agentd.memory.index.search.search_settings import SearchSettings

log = structlog.get_logger()


LOADING = 10.0  # seconds that a search waits for its mirror; then keywords alone answer
WORDS_ALONE = 0.5  # highest score in that case: words do not tell how likely a hit answers
CANDIDATES = 100  # chunks that keyword search proposes
MAX_TERMS = 48
SAVING = 300.0  # seconds between checks whether the mirror should be saved
SAVING_AGAIN = 3600.0  # seconds until the next check after a failure
_SLICE = 1_000  # chunks processed at once
_READ = f"words-{words.VERSION}:"  # prefix of digests: a file read by other rules is unread
_PERHAPS_MISSED = frozenset(  # reasons to be doubted if something was lacking
    {EmptyReason.NO_MATCH, EmptyReason.BELOW_THRESHOLD, EmptyReason.NOTHING_FITS}
)

_MANY = 64  # chunks of a file from which known entries are reused

_Said = tuple[object, ...]
_said = attrgetter("text", "context", "speaker", "scope", "source", "date", "importance")


class LiveIndex:
    """The search index. `embedders` are asked in order of preference; the last should be fast.
    `run` embeds new texts in the background; without it a few chunks are embedded when a search
    needs them.
    """

    def __init__(
        self,
        store: ChunkStore,
        mirrors: Mirrors,
        embedders: Sequence[PatientEmbedder],
        settings: SearchSettings,
        clock: Clock,
        patience: float = LOADING,
        redactor: Redactor | None = None,
    ) -> None:
        self._store = store
        self._mirrors = mirrors
        self._settings = settings
        self._clock = clock
        self._patience = patience
        self._redactor = redactor or Redactor()
        backfills = [
            Backfill(embedder, ChunkBacklog(store, embedder.model, mirrors.put_vectors))
            for embedder in embedders
        ]
        self._chain = EmbedderChain(backfills, clock, settings.query_timeout_ms / 1000)
        self._cold = asyncio.Event()
        self._warming: set[Audience] = set()
        self._runs = False
        self._is_loading = False  # set while everything is loaded after a start
        self._broken: Problem | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        store: ChunkStore,
        clock: Clock,
        embedders: Sequence[PatientEmbedder] = (),
        settings: SearchSettings | None = None,
        patience: float = LOADING,
        redactor: Redactor | None = None,
        file: Path | None = None,
    ) -> AsyncIterator[Self]:
        """Open an index with its thread, which ends with the block. Keys that `redactor` finds are
        not indexed. The owner's mirror is saved to `file` from time to time, and loaded from it at
        a start.
        """
        async with Mirrors.open(store, file=file) as mirrors:
            settings = settings or SearchSettings()
            yield cls(store, mirrors, embedders, settings, clock, patience, redactor)

    @property
    def epoch(self) -> int:
        """See IndexSearch."""
        return self._store.epoch

    async def run(self) -> None:
        """Embed new texts, load the mirrors that a search could not wait for, and save the owner's,
        until cancelled.
        """
        self._runs = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._warm())
                tasks.create_task(self._keep())
                await self._chain.run()
        finally:
            self._runs = False

    async def digests(self, source: Source) -> Mapping[str, str]:
        """See IndexWriter."""
        found = await self._store.digests(source)
        return {
            path: digest.removeprefix(_READ) if digest.startswith(_READ) else ""
            for path, digest in found.items()
        }

    async def replace(
        self, path: str, digest: str, chunks: Sequence[Chunk], since: int = 1
    ) -> None:
        """See IndexWriter."""
        many = len(chunks) >= _MANY
        entries = await self._entries(
            chunks, await self._store.entries(path, since) if many else ()
        )
        await self._mirrors.change(self._store.replace(path, _READ + digest, entries, since))
        self._chain.notice()

    async def patch(self, path: str, digest: str, patches: Sequence[LinePatch[Chunk]]) -> None:
        """See IndexWriter."""
        read = [
            LinePatch(one.first, one.end, one.count, tuple(await self._entries(one.pieces)))
            for one in patches
        ]
        change = self._store.patch(path, _READ + digest, read)
        await self._mirrors.change(change, moved=path)
        self._chain.notice()

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """See IndexWriter."""
        entries = await self._entries(chunks)
        await self._mirrors.change(self._extended(path, digest, entries))
        self._chain.notice()

    async def remove(self, paths: Sequence[str]) -> None:
        """See IndexWriter."""
        await self._mirrors.change(self._store.remove(paths), paths)

    async def erase(self, paths: Sequence[str]) -> None:
        """See IndexWriter."""
        await self._mirrors.erase(partial(self._store.erase, paths), paths)

    async def outdate(self) -> None:
        """See IndexWriter."""
        await self._store.outdate()

    async def verify(self) -> None:
        """See IndexWriter."""
        await self._store.verify()

    async def complete(self) -> None:
        """See IndexWriter."""
        if not self._mirrors.is_whole:
            await self._chain.fill_quickest()
            await self._mirrors.complete()

    async def settle(self) -> None:
        """See IndexWriter. Returns also when an embedder fails: `problems` then says so."""
        await self._chain.fill()

    async def search(self, query: SearchQuery, audience: Audience) -> SearchResult:
        """See IndexSearch. Scores lie between 0 and 1; equal ones are in order of path and line."""
        asked = dict.fromkeys(map(words.query_part, query.phrasings))
        texts = [text for text in asked if any(words.raw_words(text))]
        if not texts:
            return SearchResult((), EmptyReason.EMPTY_QUERY)
        for _ in range(2):  # the second try is answered from memory
            try:
                found = await self._ranked(texts, query, audience)
                found = found or await self._by_words(texts, query, audience)
            except StorageCorrupt:
                continue  # the store has been emptied
            if self._mirrors.is_whole:
                return found
            return replace(found, reason=heavier(found.reason, SearchShortfall.INDEXING))
        return SearchResult((), SearchShortfall.INDEXING)

    async def state(self) -> IndexState:
        """See IndexSearch. Only the indexer knows what has still to be indexed."""
        state = replace(await self._store.state(), nbytes=await self._mirrors.nbytes())
        told = await self._chain.with_vectors(state)
        if self._is_loading or self._warming:
            told = replace(told, reason=heavier(told.reason, SearchShortfall.WARMING))
        return told

    def problems(self) -> tuple[Problem, ...]:
        """Return the embedders that fail, and why words alone answer."""
        broken = (self._broken,) if self._broken else ()
        return (*broken, *self._chain.problems())

    async def _ranked(
        self, texts: Sequence[str], query: SearchQuery, audience: Audience
    ) -> SearchResult | None:
        """Return what the mirror finds; None when it is not ready in time, or fails."""
        try:
            audience = await self._mirrors.serving(audience)
            if self._runs and audience in self._warming:
                return None
            asked = await self._chain.vectors(texts)
            self._mirrors.hold(self._chain.wanted)
            if not await self._is_loaded(audience, query):
                return None
            lack = asked.lack
            if audience != OWNER and lack == SearchShortfall.VECTORS_MISSING:
                lack = ""  # the missing vectors may be the owner's
            options = self._settings.options(query, self._today())
            found = await self._mirrors.search(audience, texts, asked.vectors, asked.model, options)
        except AgentdError:
            raise
        except Exception as error:
            # A fault in ranking must not hide what was written.
            log.exception("search_broke")
            self._broken = _broke(error)
            return None
        self._broken = None
        if self._mirrors.worn:
            self._cold.set()
        hits = tuple(map(hit_of, found.hits))
        told = str(found.reason or "")
        # Only with vectors: an answer in other words shares no word with the question.
        if hits and asked.vectors is not None and found.confidence < options.least_confidence:
            told = EmptyReason.NOTHING_FITS
        if lack and (not told or told in _PERHAPS_MISSED):
            told = lack
        return SearchResult(hits, told, found.confidence)

    async def _is_loaded(self, audience: Audience, query: SearchQuery) -> bool:
        """Whether everything stored is in the mirror by now; if loading takes too long, it goes on
        in the background.
        """
        least = min(self._patience, self._settings.query_timeout_ms / 1000)
        try:
            async with asyncio.timeout(self._patience if query.waits else least):
                await self._mirrors.ready(audience)
        except TimeoutError:
            self._warming.add(audience)
            self._cold.set()
            return False
        self._warming.discard(audience)
        return True

    def _today(self) -> date:
        return self._clock.now().astimezone(self._clock.zone).date()

    async def _entries(self, chunks: Sequence[Chunk], known: Sequence[Entry] = ()) -> list[Entry]:
        """Return the index entries of chunks. Entries in `known` with the same text are reused,
        whatever their lines.
        """
        held = await self._mirrors.run(_by_words, known) if known else {}
        found: list[Entry] = []
        for first in range(0, len(chunks), _SLICE):  # searches can run in between
            found += await self._mirrors.run(self._slice, chunks[first : first + _SLICE], held)
        return found

    def _slice(self, chunks: Sequence[Chunk], held: Mapping[_Said, Entry]) -> list[Entry]:
        return _entries(chunks, held, self._redactor)

    async def _extended(self, path: str, digest: str, entries: Sequence[Entry]) -> Sequence[int]:
        await self._store.extend(path, _READ + digest, entries)
        return ()

    async def _by_words(
        self, texts: Sequence[str], query: SearchQuery, audience: Audience
    ) -> SearchResult:
        """Return what the store's own keyword search finds, ranked as far as that is possible
        without other chunks.
        """
        text = "\n".join(texts)
        terms = list(dict.fromkeys(words.terms(text)))[:MAX_TERMS]
        found = await self._store.keyword(terms, audience, limit=CANDIDATES, sources=query.sources)
        if found.reason == EmptyReason.NOTHING_INDEXED:
            return found
        options = self._settings.options(query, self._today())
        try:
            hits = await self._mirrors.arranged(found.hits, text, options, WORDS_ALONE)
        except Exception as error:
            # A fault in ranking must not hide what was written.
            log.exception("search_broke")
            self._broken = _broke(error)
            first = found.hits[: query.limit]
            hits = tuple(replace(hit, score=WORDS_ALONE * hit.score) for hit in first)
        return SearchResult(hits, SearchShortfall.WARMING, WORDS_ALONE)

    async def _keep(self) -> None:
        """Load the owner's mirror if it is large, and save it from time to time."""
        try:
            await self._load()
        except Exception:
            # The first search tries again.
            log.exception("search_not_loaded")
        while True:
            pause = SAVING
            try:
                if not await self._mirrors.save():
                    pause = SAVING_AGAIN
            except Exception:
                # Search goes on without the file.
                log.exception("mirror_not_saved")
                pause = SAVING_AGAIN
            await self._clock.sleep(pause)

    async def _load(self) -> None:
        """Load the owner's mirror, unless it is so small that the first search can do that: a
        daemon that nobody searches should not pay for it. It is loaded by slices at normal
        priority, because a thread of low priority that holds the interpreter would delay all
        others.
        """
        state = await self._chain.with_vectors(await self._store.state())
        if state.chunks < LEAST:
            return
        self._is_loading = True
        try:
            self._mirrors.hold(self._chain.wanted)
            await self._mirrors.ready(OWNER)
        finally:
            self._is_loading = False

    async def _warm(self) -> None:
        while True:
            await self._cold.wait()
            self._cold.clear()
            for audience in {*self._warming, *self._mirrors.worn}:
                try:
                    await self._mirrors.ready(audience)
                    if audience in self._mirrors.worn:
                        await self._mirrors.renew(audience)
                except Exception as error:
                    # The next search tries again; until then words alone answer.
                    log.exception("search_not_loaded")
                    self._broken = _broke(error)
                self._warming.discard(audience)


def _without_secrets(chunk: Chunk, redactor: Redactor) -> Chunk:
    text = redactor.kept(chunk.text, in_lines=True).text
    context = redactor.kept(chunk.context).text
    return replace(chunk, text=text, context=context) if text != chunk.text else chunk


def _by_words(entries: Sequence[Entry]) -> dict[_Said, Entry]:
    return {_said(one.chunk): one for one in entries}


def _entries(
    chunks: Sequence[Chunk], held: Mapping[_Said, Entry], redactor: Redactor
) -> list[Entry]:
    from agentd.memory.index.search.entries import entry, is_current

    found = []
    for chunk in chunks:
        known = held.get(_said(chunk))
        if known is not None and is_current(known.traits):
            found.append(Entry(chunk, known.terms, known.digest, known.traits))
        else:
            found.append(entry(_without_secrets(chunk, redactor)))
    return found


def _broke(error: Exception) -> Problem:
    return Problem(
        "search_broke",
        f"memory is searched by words alone: ranking broke with {type(error).__name__}",
        "the log says more; an installation that is not whole is cured by installing agentd again",
    )
