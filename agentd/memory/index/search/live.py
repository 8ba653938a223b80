"""The MemoryIndex: a durable store below, a searcher in memory above, vectors as they are made.

The searcher's thread is the first to import numpy: a daemon that nobody asks to search does without.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Self

import structlog

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
    Found,
    IndexState,
    Lack,
    Patch,
    SearchQuery,
    Source,
    heavier,
)
from agentd.memory.index.search import words
from agentd.memory.index.search.audiences import Mirrors
from agentd.memory.index.search.backfill import Backfill, ChunkBacklog
from agentd.memory.index.search.chain import EmbedderChain
from agentd.memory.index.search.hits import hit_of
from agentd.memory.index.search.patient_embedder import PatientEmbedder
from agentd.memory.index.search.saved import LEAST
from agentd.memory.index.search.search_settings import SearchSettings

log = structlog.get_logger()


LOADING = 10.0  # seconds that a search waits for the searcher; then keywords alone answer
WORDS_ALONE = 0.5  # the highest score then: words do not tell how likely a hit is meant
CANDIDATES = 100  # chunks that keywords alone propose
MAX_TERMS = 48
SAVING = 300.0  # seconds between looks whether what is in memory has grown much
SAVING_AGAIN = 3600.0  # where there was no room for it
_SLICE = 1_000  # chunks that are read at once
_READ = f"words-{words.VERSION}:"  # stands before digests: a file read by other rules has none
_PERHAPS_MISSED = frozenset(  # for what there was not
    {EmptyReason.NO_MATCH, EmptyReason.BELOW_THRESHOLD, EmptyReason.NOTHING_FITS}
)

_MANY = 64  # chunks of a file, of which it is worth asking which are known

_Said = tuple[object, ...]
_said = attrgetter("text", "context", "speaker", "scope", "source", "date", "importance")


class LiveIndex:
    """`embedders` are asked from the best on; the last one should be quick. `run` embeds what is new
    in the background; without it a few chunks are embedded when a search needs them.
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
        self._is_loading = False  # as at every start
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
        """An index with its thread, which ends with the block. What it keeps has no key that `redactor`
        finds. What is in memory is written to `file` at times, and read from it at a start.
        """
        async with Mirrors.open(store, file=file) as mirrors:
            settings = settings or SearchSettings()
            yield cls(store, mirrors, embedders, settings, clock, patience, redactor)

    @property
    def epoch(self) -> int:
        """See MemoryIndex."""
        return self._store.epoch

    async def run(self) -> None:
        """Embed what is new, load what there is and what a search had no time to wait for, and save what is
        loaded, until cancelled.
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
        """See MemoryIndex."""
        found = await self._store.digests(source)
        return {
            path: digest.removeprefix(_READ) if digest.startswith(_READ) else ""
            for path, digest in found.items()
        }

    async def replace(
        self, path: str, digest: str, chunks: Sequence[Chunk], since: int = 1
    ) -> None:
        """See MemoryIndex."""
        many = len(chunks) >= _MANY
        entries = await self._entries(
            chunks, await self._store.entries(path, since) if many else ()
        )
        await self._mirrors.change(self._store.replace(path, _READ + digest, entries, since))
        self._chain.notice()

    async def patch(self, path: str, digest: str, patches: Sequence[Patch[Chunk]]) -> None:
        """See MemoryIndex."""
        read = [
            Patch(one.first, one.end, one.count, tuple(await self._entries(one.pieces)))
            for one in patches
        ]
        change = self._store.patch(path, _READ + digest, read)
        await self._mirrors.change(change, moved=path)
        self._chain.notice()

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        """See MemoryIndex."""
        entries = await self._entries(chunks)
        await self._mirrors.change(self._extended(path, digest, entries))
        self._chain.notice()

    async def remove(self, paths: Sequence[str]) -> None:
        """See MemoryIndex."""
        await self._mirrors.change(self._store.remove(paths), paths)

    async def erase(self, paths: Sequence[str]) -> None:
        """See MemoryIndex."""
        await self._mirrors.erase(partial(self._store.erase, paths), paths)

    async def outdate(self) -> None:
        """See MemoryIndex."""
        await self._store.outdate()

    async def verify(self) -> None:
        """See MemoryIndex."""
        await self._store.verify()

    async def complete(self) -> None:
        """See MemoryIndex."""
        if not self._mirrors.is_whole:
            await self._chain.fill_quickest()
            await self._mirrors.complete()

    async def settle(self) -> None:
        """See MemoryIndex. Returns also when an embedder fails: `problems` then says so."""
        await self._chain.fill()

    async def search(self, query: SearchQuery, audience: Audience) -> Found:
        """See MemoryIndex. Scores lie between 0 and 1; equal ones are in order of path and line."""
        asked = dict.fromkeys(map(words.asked, query.phrasings))
        texts = [text for text in asked if any(words.raw_words(text))]
        if not texts:
            return Found((), EmptyReason.EMPTY_QUERY)
        for _ in range(2):  # the second time what is held in memory answers
            try:
                found = await self._ranked(texts, query, audience)
                found = found or await self._by_words(texts, query, audience)
            except StorageCorrupt:
                continue  # the store has begun anew
            if self._mirrors.is_whole:
                return found
            return replace(found, reason=heavier(found.reason, Lack.INDEXING))
        return Found((), Lack.INDEXING)

    async def state(self) -> IndexState:
        """See MemoryIndex. What is to be indexed yet is known to the indexer alone."""
        state = replace(await self._store.state(), nbytes=await self._mirrors.nbytes())
        told = await self._chain.with_vectors(state)
        if self._is_loading or self._warming:
            told = replace(told, reason=heavier(told.reason, Lack.WARMING))
        return told

    def problems(self) -> tuple[Problem, ...]:
        """Embedders that fail, and why words alone answer."""
        broken = (self._broken,) if self._broken else ()
        return (*broken, *self._chain.problems())

    async def _ranked(
        self, texts: Sequence[str], query: SearchQuery, audience: Audience
    ) -> Found | None:
        """What the searcher finds; None when it is not ready in time, or breaks."""
        try:
            audience = await self._mirrors.serving(audience)
            if self._runs and audience in self._warming:
                return None
            asked = await self._chain.vectors(texts)
            self._mirrors.hold(self._chain.wanted)
            if not await self._is_loaded(audience, query):
                return None
            lack = asked.lack
            if audience != OWNER and lack == Lack.VECTORS_MISSING:
                lack = ""  # what is being embedded may be the owner's
            options = self._settings.options(query, self._today())
            found = await self._mirrors.search(audience, texts, asked.vectors, asked.model, options)
        except AgentdError:
            raise
        except Exception as error:
            # Whatever is wrong with what ranks, what was written must still be found.
            log.exception("search_broke")
            self._broken = _broke(error)
            return None
        self._broken = None
        if self._mirrors.worn:
            self._cold.set()
        hits = tuple(map(hit_of, found.hits))
        told = str(found.reason or "")
        # Words alone cannot tell: an answer in other words holds none of the question's.
        if hits and asked.vectors is not None and found.confidence < options.least_confidence:
            told = EmptyReason.NOTHING_FITS
        if lack and (not told or told in _PERHAPS_MISSED):
            told = lack
        return Found(hits, told, found.confidence)

    async def _is_loaded(self, audience: Audience, query: SearchQuery) -> bool:
        """Whether all that is stored is in memory by now; if that takes too long, it is made ready for
        a later search.
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
        """The chunks as they are indexed. Those that are `known`, on whatever line, are not read again."""
        held = await self._mirrors.run(_by_words, known) if known else {}
        found: list[Entry] = []
        for first in range(0, len(chunks), _SLICE):  # searches come in between
            found += await self._mirrors.run(self._slice, chunks[first : first + _SLICE], held)
        return found

    def _slice(self, chunks: Sequence[Chunk], held: Mapping[_Said, Entry]) -> list[Entry]:
        return _entries(chunks, held, self._redactor)

    async def _extended(self, path: str, digest: str, entries: Sequence[Entry]) -> Sequence[int]:
        await self._store.extend(path, _READ + digest, entries)
        return ()

    async def _by_words(
        self, texts: Sequence[str], query: SearchQuery, audience: Audience
    ) -> Found:
        """What the store itself finds, arranged as far as that can be done without all the others."""
        text = "\n".join(texts)
        terms = list(dict.fromkeys(words.terms(text)))[:MAX_TERMS]
        found = await self._store.keyword(terms, audience, limit=CANDIDATES, sources=query.sources)
        if found.reason == EmptyReason.NOTHING_INDEXED:
            return found
        options = self._settings.options(query, self._today())
        try:
            hits = await self._mirrors.arranged(found.hits, text, options, WORDS_ALONE)
        except Exception as error:
            # Whatever is wrong with what ranks, what was written must still be found.
            log.exception("search_broke")
            self._broken = _broke(error)
            first = found.hits[: query.limit]
            hits = tuple(replace(hit, score=WORDS_ALONE * hit.score) for hit in first)
        return Found(hits, Lack.WARMING, WORDS_ALONE)

    async def _keep(self) -> None:
        """Load what there is, if it is much, and save it from time to time."""
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
        """Have all that is stored in memory, unless it is so little that the first search can do that: what
        it needs is not to weigh on a daemon that nobody searches. By slices, and with no priority of the
        thread: one with a low one that holds the interpreter would keep all others waiting.
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


def _kept(chunk: Chunk, redactor: Redactor) -> Chunk:
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
            found.append(entry(_kept(chunk, redactor)))
    return found


def _broke(error: Exception) -> Problem:
    return Problem(
        "search_broke",
        f"memory is searched by words alone: ranking broke with {type(error).__name__}",
        "the log says more; an installation that is not whole is cured by installing agentd again",
    )
