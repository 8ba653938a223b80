"""Gives all texts of a collection their vectors of one model, in the background or when somebody waits:
the chunks of the index, or the facts in memory.
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


COUNTED = 100_000  # pending chunks; more are not counted
NAMED = 3  # texts that a problem names

Tell = Callable[[str, Sequence[tuple[int, bytes]]], Awaitable[None]]
Keep = Callable[[str, Mapping[str, bytes]], Awaitable[None]]


class ChunkBacklog:
    """Chunks by the digest of what is embedded of them; see Backlog. How far it is outlives restarts.

    `tell` is called with the ids and stored vectors of all chunks that have one now. Chunks that were
    given up are tried again after the next start.
    """

    def __init__(self, store: ChunkStore, model: str, tell: Tell) -> None:
        self.left = 0
        self._store = store
        self._model = model
        self._tell = tell
        self._epoch = -1
        self._mark = 0  # below it every chunk has its vector, or was given up
        self._unlooked = True
        self._looking = asyncio.Lock()
        self._batch: Sequence[Unembedded] = ()
        self._given_up: dict[int, str] = {}

    def problems(self) -> tuple[Problem, ...]:
        """See Backlog."""
        if not self._given_up:
            return ()
        places = _named([*self._given_up.values()])
        text = f"{self._model} fails at what stands in {places}: words alone find it"
        cure = "change or shorten these lines; a restart of agentd tries them again"
        return (Problem("text_not_embedded", text, cure),)

    def notice(self) -> None:
        """See Backlog."""
        self._unlooked = True

    async def look(self) -> int:
        """See Backlog."""
        async with self._looking:  # who asks meanwhile is not told what was left before
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
        for row in self._batch:  # all say the same
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
        """Forget texts that are gone or have got a vector."""
        for number in list(self._given_up):
            found = await self._store.pending(self._model, number - 1, 1)
            if not found or found[0].id != number:
                del self._given_up[number]

    @property
    def _name(self) -> str:
        return f"embedded_up_to:{self._model}"

    async def _find_mark(self) -> None:
        """Where to go on, when the store has begun anew."""
        if self._epoch != self._store.epoch:
            self._epoch = self._store.epoch
            self._given_up.clear()
            self._mark = int(await self._store.meta(self._name) or 0)


class FactBacklog:
    """Facts by id and text; see Backlog. A text that was given up is so until the next start.

    `keep` is called with vectors by fact id under the lock `writing`, while nobody can take facts away: of
    a fact that went while its text was with the embedder nothing comes back.
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
        facts = _named(list(self._given_up))
        text = f"{self._model} fails at what these facts say: {facts}; words alone find them"
        cure = "say it in other words; a restart of agentd tries them again"
        return (Problem("text_not_embedded", text, cure),)

    def add(self, facts: Iterable[Fact]) -> None:
        """These need vectors, but for texts that were given up."""
        for fact in facts:
            if self._given_up.get(fact.id) != fact.text:
                self._given_up.pop(fact.id, None)
                self._texts[fact.id] = fact.text

    def remove(self, fact_ids: Iterable[str]) -> None:
        """These no longer do, those that are being embedded included."""
        for fact_id in fact_ids:
            self._texts.pop(fact_id, None)
            self._given_up.pop(fact_id, None)

    def notice(self) -> None:
        """See Backlog: `add` has told of them."""

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


def _named(places: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = len(places) - NAMED
    return ", ".join(places[:NAMED]) + (f" and {more} more" if more > 0 else "")


PROBE = "memory"  # what an embedder that works can embed
STRIKES = 2  # failures at one text, right after the probe worked: it is the text


class Backlog(Protocol):
    """The texts of one collection that have no vector of one model yet. All raise StorageError."""

    @property
    def left(self) -> int:
        """How many they were at the last look, without those that were done since."""

    def notice(self) -> None:
        """There are new texts."""

    async def look(self) -> int:
        """How many they are."""

    async def next(self, most: int) -> Mapping[Hashable, str]:
        """The texts that come next, by what tells them apart; none when all are done."""

    async def keep(self, vectors: Mapping[Hashable, bytes]) -> None:
        """Take in the vectors, as they are stored, of what `next` gave last."""

    def give_up(self) -> None:
        """Leave the only text that `next` gave last without a vector."""

    async def finish(self) -> None:
        """All that there was is done."""

    def problems(self) -> Sequence[Problem]:
        """The texts that were given up."""


class Backfill:
    """One embedder and what it has still to do of one collection.

    A text that failed alone is suspect: before it is tried again the embedder has to prove with PROBE that
    it works. One that it fails at while others work is given up, so that all others get their vectors.
    """

    def __init__(self, embedder: PatientEmbedder, backlog: Backlog) -> None:
        self.embedder = embedder
        self._backlog = backlog
        self._lock = asyncio.Lock()
        self._suspect: Hashable = None
        self._strikes = 0

    @property
    def model(self) -> str:
        """The embedder's."""
        return self.embedder.model

    @property
    def left(self) -> int:
        """How many texts have no vector, as far as was looked."""
        return self._backlog.left

    @property
    def is_busy(self) -> bool:
        """Whether it is at work."""
        return self._lock.locked()

    def problems(self) -> tuple[Problem, ...]:
        """Why the embedder fails, and the texts that it could not embed."""
        return (*self.embedder.problems(), *self._backlog.problems())

    def notice(self) -> None:
        """There are new texts."""
        self._backlog.notice()

    async def look(self) -> int:
        """How many texts are without a vector. Raises StorageError."""
        return await self._backlog.look()

    async def fill(
        self, most: int | None = None, is_wanted: Callable[[], bool] = lambda: True
    ) -> bool:
        """Give vectors to all that have none, or to so many and few more, as long as they are wanted; False
        if the embedder fails. Raises StorageError.
        """
        async with self._lock:
            if not await self.look():
                return True
            done = 0
            while batch := await self._backlog.next(self.embedder.size):
                if (most is not None and done >= most) or not is_wanted():
                    return True  # what is left came meanwhile, or may never be needed
                if self.embedder.pause or not await self._done_with(batch):
                    return False
                done += len(batch)
            await self._backlog.finish()
            log.info("embedded", model=self.model)
        return True

    async def _done_with(self, batch: Mapping[Hashable, str]) -> bool:
        """Whether nothing is left to do for these: they have vectors, or the only one is given up."""
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
