"""Gives every chunk its vector of one model, in the background or when somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from agentd.domain.health import Problem
from agentd.domain.index import Unembedded
from agentd.errors import EmbedderFault
from agentd.ports import ChunkStore, Clock, Embedder
from agentd.search.culprit import PROBE, Culprit, named
from agentd.search.halves import packed
from agentd.search.units import embedded_text

FIRST, BATCH = 16, 128  # texts at once: how slow an embedder is shows at the first
PATIENCE = 120.0  # seconds for one batch
QUICK = PATIENCE / 4  # what takes longer is not done for twice as many at once
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after failures in a row, doubling
COUNTED = 100_000  # pending chunks; more are not counted

log = structlog.get_logger()

Tell = Callable[[str, Sequence[tuple[int, bytes]]], Awaitable[None]]


class Backfill:
    """One embedder and what it has still to do.

    `tell` is called with the ids and stored vectors of all chunks that have one now. What fails is
    tried again in smaller batches, until a text is alone; one that fails while others work is left
    without a vector and named, until the next start.
    """

    def __init__(self, store: ChunkStore, embedder: Embedder, clock: Clock, tell: Tell) -> None:
        self.embedder = embedder
        self.problem: Problem | None = None
        self.left = 0
        self._store = store
        self._clock = clock
        self._tell = tell
        self._lock = asyncio.Lock()
        self._epoch = -1
        self._mark = 0
        self._unlooked = True
        self._resume = 0.0
        self._pause = FIRST_PAUSE
        self._culprit = Culprit(BATCH, FIRST)
        self._given_up: dict[int, str] = {}

    @property
    def model(self) -> str:
        """The embedder's."""
        return self.embedder.model

    @property
    def is_busy(self) -> bool:
        """Whether it is at work."""
        return self._lock.locked()

    @property
    def pause(self) -> float:
        """How many seconds it is left alone after a failure."""
        return max(0.0, self._resume - self._clock.monotonic())

    def problems(self) -> tuple[Problem, ...]:
        """Why it fails, and the texts that it could not embed."""
        told = [self.problem] if self.problem else []
        if self._given_up:
            places = named([*self._given_up.values()])
            told.append(
                Problem(
                    "text_not_embedded",
                    f"{self.model} fails at what stands in {places}: words alone find it",
                    "change or shorten these lines; a restart of agentd tries them again",
                )
            )
        return tuple(told)

    def notice(self) -> None:
        """There are new chunks."""
        self._unlooked = True

    async def look(self) -> int:
        """How many chunks are without a vector. Raises StorageError."""
        if self._unlooked:
            await self._find_mark()
            await self._check_given_up()
            self._unlooked = False
            self.left = await self._store.count_pending(self.model, self._mark, COUNTED)
        return self.left

    async def fill(self, most: int | None = None) -> bool:
        """Give vectors to all that have none, or to so many and few more; False if the embedder fails.
        Raises StorageError.
        """
        async with self._lock:
            if not await self.look():
                return True
            done = 0
            while batch := await self._store.pending(self.model, self._mark, self._culprit.size):
                if most is not None and done >= most:
                    return True  # the others came meanwhile
                if self.pause or not await self._done_with(batch):
                    return False
                self._mark = batch[-1].id
                self.left = max(0, self.left - len(batch))
                done += len(batch)
            self.left = 0
            done_up_to = min([self._mark, *(number - 1 for number in self._given_up)])
            await self._store.set_meta(self._name, str(done_up_to))
            await self._store.prune()
            log.info("embedded", model=self.model)
        return True

    async def ask(self, queries: Sequence[str]) -> Sequence[bytes]:
        """The vectors of queries. Raises EmbedderFault."""
        try:
            vectors = await self.embedder.embed(queries, query=True)
            self._check(vectors, len(queries))
        except EmbedderFault as fault:
            self._fail(fault)
            raise
        self._recover()
        return vectors

    async def _done_with(self, batch: Sequence[Unembedded]) -> bool:
        """Whether nothing is left to do for these: they have vectors, or the only one is given up."""
        ids = [row.id for row in batch]
        if self._culprit.is_suspect(ids) and not await self._works():
            return False
        begun = self._clock.monotonic()
        if await self._embed(batch):
            self._culprit.clear(was_quick=self._clock.monotonic() - begun < QUICK)
            return True
        if not self._culprit.blame(ids):
            return False
        chunk = batch[0].chunk
        self._given_up[batch[0].id] = f"{chunk.path}:{chunk.start_line}"
        self.problem = None  # it is the text's
        log.warning("text_not_embedded", model=self.model, path=chunk.path, line=chunk.start_line)
        return True

    async def _works(self) -> bool:
        """Whether the embedder works just now."""
        return await self._vectors([PROBE]) is not None

    async def _check_given_up(self) -> None:
        """Forget texts that are gone or have got a vector."""
        for number in list(self._given_up):
            found = await self._store.pending(self.model, number - 1, 1)
            if not found or found[0].id != number:
                del self._given_up[number]

    async def _embed(self, batch: Sequence[Unembedded]) -> bool:
        texts = {row.digest: embedded_text(row.chunk) for row in batch}
        stored = await self._vectors(list(texts.values()))
        if stored is None:
            return False
        rows = dict(zip(texts, stored, strict=True))
        await self._tell(self.model, await self._store.put_vectors(self.model, rows))
        return True

    async def _vectors(self, texts: Sequence[str]) -> Sequence[bytes] | None:
        """One vector for each text, as it is stored; None when the embedder fails."""
        try:
            async with asyncio.timeout(PATIENCE):
                vectors = await self.embedder.embed(texts)
            self._check(vectors, len(texts))
            stored = await asyncio.to_thread(packed, vectors)
        except TimeoutError:
            self._fail(EmbedderFault(f"{self.model} gave no vectors in {PATIENCE:.0f} seconds"))
            return None
        except EmbedderFault as fault:
            self._fail(fault)
            return None
        self._recover()
        return stored

    def _check(self, vectors: Sequence[bytes], count: int) -> None:
        if len(vectors) != count:
            raise EmbedderFault(f"{self.model} gave {len(vectors)} vectors for {count} texts")
        wanted = 4 * self.embedder.dimension
        wrong = next((len(vector) for vector in vectors if len(vector) != wanted), None)
        if wrong is not None:
            raise EmbedderFault(
                f"{self.model} gave a vector of {wrong // 4} numbers instead of"
                f" {self.embedder.dimension}",
                cure="name another model in [memory_search], or set provider",
            )

    def _fail(self, fault: EmbedderFault) -> None:
        self.problem = Problem("embedder_down", fault.message, fault.cure)
        self._resume = self._clock.monotonic() + self._pause
        log.warning("embedder_failed", model=self.model, error=fault.message, again_in=self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _recover(self) -> None:
        self.problem = None
        self._pause = FIRST_PAUSE

    @property
    def _name(self) -> str:
        return f"embedded_up_to:{self.model}"

    async def _find_mark(self) -> None:
        """Where to go on: below it every chunk has its vector."""
        if self._epoch != self._store.epoch:
            self._epoch = self._store.epoch
            self._given_up.clear()
            self._culprit.forget()
            self._mark = int(await self._store.meta(self._name) or 0)
