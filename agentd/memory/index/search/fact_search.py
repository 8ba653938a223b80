"""The FactIndex: active facts in memory, found by words and by meaning.

The store's facts and vectors are read at the first query. While there is no fact, neither numpy nor
an embedder is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Self, TypeVar

import structlog

from agentd.core.errors import AgentdError
from agentd.core.fact import Fact, FactHit
from agentd.core.health import Problem
from agentd.core.ports import Clock, FactVectorStore
from agentd.core.text import sentences
from agentd.memory.index.search import words
from agentd.memory.index.search.backfill import Backfill, FactBacklog
from agentd.memory.index.search.chain import EmbedderChain
from agentd.memory.index.search.patient_embedder import PatientEmbedder

if TYPE_CHECKING:
    from agentd.memory.index.search.facts_in_memory import FactMirror

log = structlog.get_logger()


SIMILARITY = 0.35  # cosine, on the scale of sentence transformers
CANDIDATES = 50  # facts that each retriever proposes
PATIENCE = 0.1  # seconds for a query's vector; after that keywords alone answer
LOADING = 10  # factor until the last embedder has answered once
JUDGING = 50  # factor for a text that is compared with facts
SLICE = 2_000  # facts added at once: other threads get the interpreter in between
MAX_LETTERS = 10_000  # characters of a query that count
LONGEST = 2_000  # characters of one piece of a text
ENDS = 3  # sentences at either end of a text that are searched by themselves, too


T = TypeVar("T")


class LiveFacts:
    """The index of active facts. `embedders` are asked in order of preference; the last should be
    fast. `run` loads facts and embeds new ones in the background; without it both happen when a
    search needs them.
    """

    def __init__(
        self,
        store: FactVectorStore,
        embedders: Sequence[PatientEmbedder],
        clock: Clock,
        pool: ThreadPoolExecutor,
        similarity: float = SIMILARITY,
        candidates: int = CANDIDATES,
        patience: float = PATIENCE,
    ) -> None:
        self._store = store
        self._clock = clock
        self._pool = pool
        self._similarity = similarity
        self._candidates = candidates
        self._patience = patience
        self._writing = asyncio.Lock()
        self._embedders = tuple(embedders)
        self._backlogs = tuple(
            FactBacklog(embedder.model, self._keep, self._writing) for embedder in embedders
        )
        self._chain = EmbedderChain(
            [Backfill(*each) for each in zip(embedders, self._backlogs, strict=True)],
            clock,
            patience,
            warming=LOADING * patience,
            waits=False,
        )
        self._facts: dict[str, Fact] | None = None  # active facts, once read
        self._mirror: FactMirror | None = None
        self._cold, self._warm = asyncio.Event(), asyncio.Event()
        self._runs = False

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        store: FactVectorStore,
        embedders: Sequence[PatientEmbedder],
        clock: Clock,
        similarity: float = SIMILARITY,
        candidates: int = CANDIDATES,
        patience: float = PATIENCE,
    ) -> AsyncIterator[Self]:
        """Open an index with its thread, which ends with the block."""
        pool = ThreadPoolExecutor(1, "facts")
        try:
            yield cls(store, embedders, clock, pool, similarity, candidates, patience)
        finally:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    @property
    def pending(self) -> int:
        """The number of facts without a vector of the best embedder."""
        return self._chain.left

    async def settle(self) -> None:
        """Embed new facts now. Returns also when an embedder fails: `problems` then says so."""
        if await self._ready() is not None:
            await self._chain.fill()

    async def run(self) -> None:
        """Load facts at the first query, and embed new ones, until cancelled."""
        self._runs = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._load_when_asked())
                await self._chain.run()
        finally:
            self._runs = False

    async def put(self, facts: Sequence[Fact]) -> None:
        """See FactIndex."""
        active = [fact for fact in facts if fact.is_active]
        if not active and self._facts is None and not self._writing.locked():
            return  # the store will have the change when it is read
        async with self._changing():
            held = await self._read()
            new = [f for f in active if f.id not in held or held[f.id].text != f.text]
            gone = [fact.id for fact in facts if not fact.is_active]
            held.update((fact.id, fact) for fact in active)
            self._forget(gone)
            for backlog in self._backlogs:
                backlog.add(new)
            if self._mirror is not None:
                await self._take_in(self._mirror, active)
                await self._run(self._mirror.remove, gone)
        self._chain.notice()

    async def remove(self, fact_ids: Sequence[str]) -> None:
        """See FactIndex. Once it has returned, no answer of an embedder brings anything back."""
        ids = list(fact_ids)
        self._forget(ids)  # at once, so that a running search does not return them
        async with self._changing():
            self._forget(ids)
            if self._mirror is not None:
                await self._run(self._mirror.remove, ids)
                if self._mirror.is_worn:
                    self._mirror = None

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """See FactIndex. The partial score `relation` is at least 0 for facts that relate to the
        text closely enough to be shown in a turn.
        """
        text = query.strip()[:MAX_LETTERS]
        mirror = await self._ready() if any(words.raw_words(text)) else None
        if mirror is None:
            return ()
        pieces = pieces_of(text)
        asked = await self._chain.vectors(pieces)
        now = self._clock.now()
        found = await self._run(mirror.find, pieces, asked.vectors, asked.model, now, limit)
        held = self._facts or {}
        return [FactHit(held[f.id], f.score, f.scores) for f in found if f.id in held][:limit]

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        """See FactIndex."""
        by_words = [hit.fact for hit in await self.find(text, limit)]
        by_meaning = await self._by_meaning(text, limit)
        pairs = zip_longest(by_words, by_meaning)
        found = {fact.id: fact for pair in pairs for fact in pair if fact is not None}
        return tuple(found.values())[:limit]

    async def cosines(self, query: str, fact_ids: Sequence[str]) -> Mapping[str, float]:
        """See FactIndex."""
        mirror = await self._ready()
        if mirror is None or not fact_ids:
            return {}
        pieces = pieces_of(query.strip()[:MAX_LETTERS])
        asked = await self._chain.vectors(pieces)
        if asked.vectors is None:
            return {}
        return await self._run(mirror.cosines, fact_ids, asked.vectors, asked.model)

    def problems(self) -> tuple[Problem, ...]:
        """Return the embedders that fail, and the facts they fail at."""
        return self._chain.problems()

    async def _by_meaning(self, text: str, limit: int) -> Sequence[Fact]:
        """Return the facts nearest to a text, nearest first; none while no embedder answers."""
        mirror = await self._ready()
        if mirror is None:
            return ()
        seconds = JUDGING * self._patience
        # A comparison can wait: the nearest facts by a fast embedder are not those that a text
        # outdates.
        await self._chain.catch_up(seconds)
        asked = await self._chain.vectors([text[:MAX_LETTERS]], seconds, query=False)
        if asked.vectors is None:
            return ()
        found = await self._run(mirror.nearest, asked.vectors[0], asked.model, limit)
        held = self._facts or {}
        return [held[name] for name in found if name in held]

    async def _ready(self) -> FactMirror | None:
        """Return the mirror with all facts, loading it if necessary; None if there are no facts."""
        if self._facts is not None and not self._facts:
            return None
        if self._mirror is None and self._runs:
            self._warm.clear()
            self._cold.set()
            await self._warm.wait()
        elif self._mirror is None:
            await self._load()
        return self._mirror

    async def _load(self) -> None:
        async with self._writing:
            held = await self._read()
            if self._mirror is not None or not held:
                return
            mirror = await self._run(_new, self._similarity, self._candidates)
            await self._take_in(mirror, list(held.values()))
            for embedder, backlog in zip(self._embedders, self._backlogs, strict=True):
                stored = await self._store.vectors(embedder.model)
                size = 2 * embedder.dimension
                known = {n: v for n, v in stored.items() if n in held and len(v) == size}
                await self._run(mirror.put_vectors, embedder.model, known)
                backlog.add(fact for fact in held.values() if fact.id not in known)
                backlog.remove(known)
            self._mirror = mirror
        self._chain.notice()

    async def _load_when_asked(self) -> None:
        while True:
            await self._cold.wait()
            self._cold.clear()
            try:
                await self._load()
            except AgentdError as error:
                log.warning("facts_not_loaded", reason=error.reason)  # the next search tries again
            self._warm.set()

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[None]:
        """Give the block sole access to the mirror; if the block fails, the mirror is loaded
        anew.
        """
        async with self._writing:
            try:
                yield
            except BaseException:
                self._mirror = None
                raise

    async def _read(self) -> dict[str, Fact]:
        if self._facts is None:
            self._facts = {fact.id: fact for fact in await self._store.facts() if fact.is_active}
        return self._facts

    async def _take_in(self, mirror: FactMirror, facts: Sequence[Fact]) -> None:
        for start in range(0, len(facts), SLICE):
            await self._run(mirror.put, facts[start : start + SLICE])

    async def _keep(self, model: str, vectors: Mapping[str, bytes]) -> None:
        await self._store.put_vectors(model, vectors)
        if self._mirror is not None:
            await self._run(self._mirror.put_vectors, model, vectors)

    def _forget(self, fact_ids: Sequence[str]) -> None:
        for fact_id in fact_ids:
            if self._facts is not None:
                self._facts.pop(fact_id, None)
        for backlog in self._backlogs:
            backlog.remove(fact_ids)

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        """Run `work` on the index's thread and return its result. Cancelling the caller does not
        stop it.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args))


def pieces_of(text: str) -> list[str]:
    """Return the pieces of a text to search for: the whole text, and its first and last
    sentences.
    """
    found = [sentence[:LONGEST] for sentence in sentences(text)]
    ends = [*found[:ENDS], *found[-ENDS:]] if len(found) > 1 else []
    return list(dict.fromkeys([text[:LONGEST], *ends]))


def _new(similarity: float, candidates: int) -> FactMirror:
    from agentd.memory.index.search.facts_in_memory import FactMirror

    return FactMirror(similarity, candidates)
