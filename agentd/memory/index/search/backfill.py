"""Embeds all texts of a collection (the chunks of the index, or the facts in memory) with one
model, in the background or while a caller waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Protocol

import structlog

from agentd.core.fact import Fact
from agentd.core.health import Problem
from agentd.core.ports import ChunkStore
from agentd.core.search import Unembedded
from agentd.memory.index.search.patient_embedder import PatientEmbedder
from agentd.memory.index.search.units import embedded_text

log = structlog.get_logger()


COUNTED = 100_000  # pending chunks are counted up to this number
NAMED = 3  # texts named in a problem

Tell = Callable[[str, Sequence[tuple[int, bytes]]], Awaitable[None]]
Keep = Callable[[str, Mapping[str, bytes]], Awaitable[None]]


class ChunkBacklog:
    """The chunks without a vector, by the digest of their embedded text; see Backlog. Progress
    survives restarts. `tell` is called with the ids and stored vectors of all chunks that now have
    one. Chunks that were given up are tried again after the next start.
    """

    def __init__(self, store: ChunkStore, model: str, tell: Tell) -> None:
        self.left = 0
        self._store = store
        self._model = model
        self._tell = tell
        self._epoch = -1
        self._mark = 0  # every chunk up to this id has its vector, or was given up
        self._unlooked = True
        self._looking = asyncio.Lock()
        self._batch: Sequence[Unembedded] = ()
        self._given_up: dict[int, str] = {}

    def problems(self) -> tuple[Problem, ...]:
        """See Backlog."""
        if not self._given_up:
            return ()
        places = _name_some([*self._given_up.values()])
        text = f"{self._model} fails at what stands in {places}: words alone find it"
        cure = "change or shorten these lines; a restart of agentd tries them again"
        return (Problem("text_not_embedded", text, cure),)

    def notice(self) -> None:
        """See Backlog."""
        self._unlooked = True

    async def look(self) -> int:
        """See Backlog."""
        async with self._looking:  # so that concurrent callers get the new count
            if self._unlooked:
                await self._find_mark()
                await self._check_given_up()
                self._unlooked = False
                self.left = await self._store.count_pending(self._model, self._mark, COUNTED)
        return self.left

    async def next(self, most: int) -> Mapping[Hashable, str]:
        """See Backlog."""
        self._batch = await self._store.pending(self._model, self._mark, most)
        return {row.digest: embedded_text(row.chunk) for row in self._batch}

    async def keep(self, vectors: Mapping[Hashable, bytes]) -> None:
        """See Backlog."""
        stored = {row.digest: vectors[row.digest] for row in self._batch}
        await self._tell(self._model, await self._store.put_vectors(self._model, stored))
        self._advance()

    def give_up(self) -> None:
        """See Backlog."""
        for row in self._batch:  # all have the same text
            self._given_up[row.id] = f"{row.chunk.path}:{row.chunk.start_line}"
        self._advance()

    async def finish(self) -> None:
        """See Backlog."""
        self.left = 0
        done_up_to = min([self._mark, *(number - 1 for number in self._given_up)])
        await self._store.set_meta(self._name, str(done_up_to))
        await self._store.prune()

    def _advance(self) -> None:
        self._mark = self._batch[-1].id
        self.left = max(0, self.left - len(self._batch))

    async def _check_given_up(self) -> None:
        """Drop from the given-up chunks those that are gone or have got a vector."""
        for number in list(self._given_up):
            found = await self._store.pending(self._model, number - 1, 1)
            if not found or found[0].id != number:
                del self._given_up[number]

    @property
    def _name(self) -> str:
        return f"embedded_up_to:{self._model}"

    async def _find_mark(self) -> None:
        """Read where to continue, if the store has been emptied or was just opened."""
        if self._epoch != self._store.epoch:
            self._epoch = self._store.epoch
            self._given_up.clear()
            self._mark = int(await self._store.meta(self._name) or 0)


class FactBacklog:
    """The facts without a vector, by id and text; see Backlog. A text that was given up stays so
    until the next start.

    `keep` is called with vectors by fact id while the lock `writing` is held, so that no fact can
    be removed meanwhile: a fact that was removed while its text was with the embedder does not come
    back.
    """

    def __init__(self, model: str, keep: Keep, writing: asyncio.Lock) -> None:
        self._model = model
        self._keep = keep
        self._writing = writing
        self._texts: dict[str, str] = {}
        self._batch: Sequence[tuple[str, str]] = ()
        self._given_up: dict[str, str] = {}  # texts, too

    @property
    def left(self) -> int:
        """See Backlog."""
        return len(self._texts)

    def problems(self) -> tuple[Problem, ...]:
        """See Backlog."""
        if not self._given_up:
            return ()
        facts = _name_some(list(self._given_up))
        text = f"{self._model} fails at what these facts say: {facts}; words alone find them"
        cure = "say it in other words; a restart of agentd tries them again"
        return (Problem("text_not_embedded", text, cure),)

    def add(self, facts: Iterable[Fact]) -> None:
        """Add facts that need vectors, except texts that were given up."""
        for fact in facts:
            if self._given_up.get(fact.id) != fact.text:
                self._given_up.pop(fact.id, None)
                self._texts[fact.id] = fact.text

    def remove(self, fact_ids: Iterable[str]) -> None:
        """Remove facts, including those that are being embedded."""
        for fact_id in fact_ids:
            self._texts.pop(fact_id, None)
            self._given_up.pop(fact_id, None)

    def notice(self) -> None:
        """Do nothing: `add` has reported new texts already. See Backlog."""

    async def look(self) -> int:
        """See Backlog."""
        return self.left

    async def next(self, most: int) -> Mapping[Hashable, str]:
        """See Backlog."""
        self._batch = tuple(islice(self._texts.items(), most))
        return {(fact_id, text): text for fact_id, text in self._batch}

    async def keep(self, vectors: Mapping[Hashable, bytes]) -> None:
        """See Backlog."""
        async with self._writing:
            still = {each[0]: vectors[each] for each in self._batch if self._is_left(*each)}
            if still:
                await self._keep(self._model, still)
            self.remove(still)

    def give_up(self) -> None:
        """See Backlog."""
        for fact_id, text in self._batch:
            if self._is_left(fact_id, text):
                self._given_up[fact_id] = self._texts.pop(fact_id)

    async def finish(self) -> None:
        """See Backlog."""

    def _is_left(self, fact_id: str, text: str) -> bool:
        return self._texts.get(fact_id) == text


def _name_some(places: Sequence[str]) -> str:
    """Return the first few places, and how many more there are, in words."""
    more = len(places) - NAMED
    return ", ".join(places[:NAMED]) + (f" and {more} more" if more > 0 else "")


PROBE = "memory"  # a text that every working embedder can embed
STRIKES = 2  # failures right after a good PROBE that blame the text


class Backlog(Protocol):
    """The texts of one collection that have no vector of one model yet. All methods raise
    StorageError.
    """

    @property
    def left(self) -> int:
        """The count of the last `look`, minus the texts done since."""

    def notice(self) -> None:
        """Report that there are new texts."""

    async def look(self) -> int:
        """Count the texts without a vector."""

    async def next(self, most: int) -> Mapping[Hashable, str]:
        """Return the next texts, at most `most`, by a key that identifies them; empty when all are
        done.
        """

    async def keep(self, vectors: Mapping[Hashable, bytes]) -> None:
        """Store the vectors, in stored form, of the texts that `next` returned last."""

    def give_up(self) -> None:
        """Leave the only text that `next` returned last without a vector."""

    async def finish(self) -> None:
        """Record that all texts are done."""

    def problems(self) -> Sequence[Problem]:
        """Return a problem for the texts that were given up; empty if there are none."""


class Backfill:
    """Embeds the backlog of one collection with one embedder.

    A text that failed alone is suspect: before it is tried again, the embedder has to embed PROBE
    to prove that it works. A text that fails while others work is given up, so that all others get
    their vectors.
    """

    def __init__(self, embedder: PatientEmbedder, backlog: Backlog) -> None:
        self.embedder = embedder
        self._backlog = backlog
        self._lock = asyncio.Lock()
        self._suspect: Hashable = None
        self._strikes = 0

    @property
    def model(self) -> str:
        """The identity of the embedder."""
        return self.embedder.model

    @property
    def left(self) -> int:
        """How many texts had no vector at the last count."""
        return self._backlog.left

    @property
    def is_busy(self) -> bool:
        """Whether texts are being embedded."""
        return self._lock.locked()

    def problems(self) -> tuple[Problem, ...]:
        """Return why the embedder fails, and the texts that it could not embed."""
        return (*self.embedder.problems(), *self._backlog.problems())

    def notice(self) -> None:
        """Report that there are new texts."""
        self._backlog.notice()

    async def look(self) -> int:
        """Return how many texts have no vector. Raises StorageError."""
        return await self._backlog.look()

    async def fill(
        self, most: int | None = None, is_wanted: Callable[[], bool] = lambda: True
    ) -> bool:
        """Embed all texts that have no vector, or with `most` about so many, while `is_wanted`
        holds. Return False if the embedder fails. Raises StorageError.
        """
        async with self._lock:
            if not await self.look():
                return True
            done = 0
            while batch := await self._backlog.next(self.embedder.size):
                if (most is not None and done >= most) or not is_wanted():
                    return True  # the rest is new, or may never be needed
                if self.embedder.pause or not await self._done_with(batch):
                    return False
                done += len(batch)
            await self._backlog.finish()
            log.info("embedded", model=self.model)
        return True

    async def _done_with(self, batch: Mapping[Hashable, str]) -> bool:
        """Embed a batch; return whether it is done: its vectors are stored, or its only text is
        given up.
        """
        names = list(batch)
        was_suspect = names == [self._suspect]
        if was_suspect and await self.embedder.embed([PROBE]) is None:
            return False
        vectors = await self.embedder.embed(list(batch.values()))
        if vectors is not None:
            await self._backlog.keep(dict(zip(batch, vectors, strict=True)))
            return True
        if len(names) == 1:
            self._suspect, self._strikes = names[0], self._strikes + 1 if was_suspect else 0
        if not was_suspect or self._strikes < STRIKES:
            return False
        self.embedder.acquit()
        log.warning("text_not_embedded", model=self.model, text=str(names[0]))
        self._backlog.give_up()
        return True
