"""Gives all texts of a collection their vectors of one model, in the background or when somebody waits."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain, islice
from math import isfinite
from typing import Protocol

import structlog

from agentd.core.errors import EmbedderFault
from agentd.core.fact import Fact
from agentd.core.health import Problem
from agentd.core.ports import ChunkStore, Clock, Embedder
from agentd.core.search import Unembedded
from agentd.memory.index.search.units import embedded_text

log = structlog.get_logger()


# One embedder, asked with patience: its answers are checked, after a failure it is left alone for a while,
# and it is given no more at once than it can do in time. All that search with it share what is known of it.

FIRST, MOST = 16, 128  # texts at once
SECONDS = 120.0  # for one batch
QUICK = SECONDS / 4  # what takes longer is not done for twice as many at once
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after failures in a row, doubling
LATE = 3  # questions in a row that it answers too late for
FEWER = 8  # so many times fewer texts at once after a failure; twice as many after a success
_MOST_HALF = 65504.0  # of float16


class PatientEmbedder:
    """An embedder, and how it is: `problem` says why it fails, `size` how many texts to try at once. What
    failed is to be tried again in smaller batches.
    """

    def __init__(self, embedder: Embedder, clock: Clock) -> None:
        self.problem: Problem | None = None  # why it fails; None while it works
        self.size = FIRST  # texts to try at once: how slow it is shows at them
        self.has_answered = False
        self._late = 0  # questions in a row that it did not answer in time
        self._waited = 0.0  # seconds that the last of them had
        self._embedder = embedder
        self._clock = clock
        self._resume = 0.0
        self._pause = FIRST_PAUSE

    @property
    def model(self) -> str:
        """The embedder's."""
        return self._embedder.model

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self._embedder.dimension

    @property
    def pause(self) -> float:
        """How many seconds it is left alone after a failure."""
        return max(0.0, self._resume - self._clock.monotonic())

    @property
    def fails(self) -> bool:
        """Whether it is down, or too slow for questions: then others stand in for it."""
        return self.problem is not None or self._late >= LATE

    def was_late(self, seconds: float) -> None:
        """A question was not waited for any longer than that."""
        self._late += 1
        self._waited = seconds

    def problems(self) -> tuple[Problem, ...]:
        """Why others stand in for it."""
        if self.problem is not None:
            return (self.problem,)
        if not self.fails:
            return ()
        text = f"{self.model} took longer than {self._waited:g} s for each of the last {self._late} questions"
        cure = "raise query_timeout_ms in [memory_search], or choose a quicker embedder"
        return (Problem("embedder_slow", text, cure),)

    async def ask(self, texts: Sequence[str], *, query: bool) -> Sequence[bytes]:
        """The vectors of what is looked for. Raises EmbedderFault."""
        try:
            found = await self._found(texts, query=query)
        except EmbedderFault as fault:
            self._fail(fault)
            raise
        self._recover()
        self._late = 0
        return found

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes] | None:
        """The vectors, as they are stored, of at most `size` texts; None if the embedder fails."""
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(SECONDS):
                found = await self._found(texts, query=False)
            stored = await asyncio.to_thread(packed, found)
        except TimeoutError:
            self._fail(EmbedderFault(f"{self.model} gave no vectors in {SECONDS:g} seconds"))
        except EmbedderFault as fault:
            self._fail(fault)
        else:
            self._recover()
            if self._clock.monotonic() - begun < QUICK:
                self.size = min(MOST, 2 * self.size)
            return stored
        self.size = max(1, len(texts) // FEWER)
        return None

    def acquit(self) -> None:
        """Its failure was the fault of one text."""
        self.problem = None

    async def _found(self, texts: Sequence[str], *, query: bool) -> Sequence[bytes]:
        found = await self._embedder.embed(texts, query=query)
        self._check(found, len(texts))
        return found

    def _check(self, vectors: Sequence[bytes], count: int) -> None:
        if len(vectors) != count:
            raise EmbedderFault(f"{self.model} gave {len(vectors)} vectors for {count} texts")
        wrong = next((len(it) for it in vectors if len(it) != 4 * self.dimension), None)
        if wrong is not None:
            raise EmbedderFault(
                f"{self.model} gave a vector of {wrong // 4} numbers instead of {self.dimension}",
                cure="name another model in [memory_search], or set provider",
            )

    def _recover(self) -> None:
        self.problem = None
        self.has_answered = True
        self._pause = FIRST_PAUSE

    def _fail(self, fault: EmbedderFault) -> None:
        self.problem = Problem("embedder_down", fault.message, fault.cure)
        self._resume = self._clock.monotonic() + self._pause
        log.warning("embedder_failed", model=self.model, error=fault.message, again_in=self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


def patient(embedders: Sequence[Embedder], clock: Clock) -> tuple[PatientEmbedder, ...]:
    """Each of them asked with patience."""
    return tuple(PatientEmbedder(embedder, clock) for embedder in embedders)


def packed(vectors: Sequence[bytes]) -> list[bytes]:
    """Vectors of float32, all of one length, as they are stored: of float16, whose error is far below that
    of any model. Needs no numpy. Raises EmbedderFault for numbers that are none.
    """
    if not vectors:
        return []
    count = len(vectors[0]) // 4
    rows = [struct.unpack(f"<{count}f", vector) for vector in vectors]
    numbers = chain.from_iterable(rows)
    if not all(isfinite(number) and abs(number) <= _MOST_HALF for number in numbers):
        raise EmbedderFault("a vector holds what is no number", cure="name another model")
    half = struct.Struct(f"<{count}e")
    return [half.pack(*row) for row in rows]


# What has no vector of one model yet: of the chunks of the index, and of the facts in memory.

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
