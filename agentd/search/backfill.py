"""Gives every chunk its vector of one model, in the background or when somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from agentd.domain.health import Problem
from agentd.domain.index import Unembedded
from agentd.errors import EmbedderFault
from agentd.ports import ChunkStore, Clock, Embedder
from agentd.search.units import embedded_text

BATCH = 128
PATIENCE = 120.0  # seconds for one batch
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after failures in a row, doubling
COUNTED = 100_000  # pending chunks; more are not counted

log = structlog.get_logger()

Pack = Callable[[Sequence[bytes]], Awaitable[Sequence[bytes]]]
Tell = Callable[[str, Sequence[tuple[int, bytes]]], Awaitable[None]]


class Backfill:
    """One embedder and what it has still to do.

    `pack` turns its float32 vectors into what is stored, or raises EmbedderFault for what is none;
    `tell` is called with the ids and stored vectors of all chunks that have one now.
    """

    def __init__(
        self, store: ChunkStore, embedder: Embedder, clock: Clock, pack: Pack, tell: Tell
    ) -> None:
        self.embedder = embedder
        self.problem: Problem | None = None
        self.left = 0
        self._store = store
        self._clock = clock
        self._pack = pack
        self._tell = tell
        self._lock = asyncio.Lock()
        self._epoch = -1
        self._mark = 0
        self._unlooked = True
        self._resume = 0.0
        self._pause = FIRST_PAUSE

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

    def notice(self) -> None:
        """There are new chunks."""
        self._unlooked = True

    async def look(self) -> int:
        """How many chunks are without a vector. Raises StorageError."""
        if self._unlooked:
            await self._find_mark()
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
            while batch := await self._store.pending(self.model, self._mark, BATCH):
                if most is not None and done >= most:
                    return True  # the others came meanwhile
                if self.pause or not await self._embed(batch):
                    return False
                self._mark = batch[-1].id
                self.left = max(0, self.left - len(batch))
                done += len(batch)
            self.left = 0
            await self._store.set_meta(self._name, str(self._mark))
            await self._store.prune()
            log.info("embedded", model=self.model)
        return True

    async def ask(self, query: str) -> bytes:
        """The vector of a query. Raises EmbedderFault."""
        try:
            (vector,) = await self.embedder.embed([query], query=True)
            self._check([vector])
        except EmbedderFault as fault:
            self._fail(fault)
            raise
        self._recover()
        return vector

    async def _embed(self, batch: Sequence[Unembedded]) -> bool:
        texts = {row.digest: embedded_text(row.chunk) for row in batch}
        try:
            async with asyncio.timeout(PATIENCE):
                vectors = await self.embedder.embed(list(texts.values()))
            if len(vectors) != len(texts):
                raise EmbedderFault(
                    f"{self.model} gave {len(vectors)} vectors for {len(texts)} texts"
                )
            self._check(vectors)
            stored = await self._pack(vectors)
        except TimeoutError:
            self._fail(EmbedderFault(f"{self.model} gave no vectors in {PATIENCE:.0f} seconds"))
            return False
        except EmbedderFault as fault:
            self._fail(fault)
            return False
        self._recover()
        rows = dict(zip(texts, stored, strict=True))
        await self._tell(self.model, await self._store.put_vectors(self.model, rows))
        return True

    def _check(self, vectors: Sequence[bytes]) -> None:
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
            self._mark = int(await self._store.meta(self._name) or 0)
