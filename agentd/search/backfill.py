"""Gives every chunk its vector of one model, in the background or when somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from agentd.domain.health import Problem
from agentd.domain.index import Unembedded
from agentd.ports import ChunkStore, Clock, Embedder
from agentd.search.patience import PatientEmbedder, TextFault, named
from agentd.search.units import embedded_text

FIRST = 16  # texts at once
COUNTED = 100_000  # pending chunks; more are not counted

log = structlog.get_logger()

Tell = Callable[[str, Sequence[tuple[int, bytes]]], Awaitable[None]]


class Backfill:
    """One embedder and what it has still to do.

    `tell` is called with the ids and stored vectors of all chunks that have one now. A text that the
    embedder fails at while others work is left without a vector and named, until the next start.
    """

    def __init__(self, store: ChunkStore, embedder: Embedder, clock: Clock, tell: Tell) -> None:
        self.embedder = PatientEmbedder(embedder, clock, FIRST)
        self.left = 0
        self._store = store
        self._tell = tell
        self._lock = asyncio.Lock()
        self._epoch = -1
        self._mark = 0
        self._unlooked = True
        self._given_up: dict[int, str] = {}

    @property
    def model(self) -> str:
        """The embedder's."""
        return self.embedder.model

    @property
    def is_busy(self) -> bool:
        """Whether it is at work."""
        return self._lock.locked()

    def problems(self) -> tuple[Problem, ...]:
        """Why it fails, and the texts that it could not embed."""
        told = [self.embedder.problem] if self.embedder.problem else []
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
            while batch := await self._store.pending(self.model, self._mark, self.embedder.size):
                if most is not None and done >= most:
                    return True  # the others came meanwhile
                if self.embedder.pause or not await self._done_with(batch):
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

    async def _done_with(self, batch: Sequence[Unembedded]) -> bool:
        """Whether nothing is left to do for these: they have vectors, or the only one is given up."""
        texts = {row.digest: embedded_text(row.chunk) for row in batch}
        try:
            stored = await self.embedder.embed(texts)
        except TextFault:
            for row in batch:  # all say the same
                self._given_up[row.id] = f"{row.chunk.path}:{row.chunk.start_line}"
            return True
        if stored is None:
            return False
        rows = dict(zip(texts, stored, strict=True))
        await self._tell(self.model, await self._store.put_vectors(self.model, rows))
        return True

    async def _check_given_up(self) -> None:
        """Forget texts that are gone or have got a vector."""
        for number in list(self._given_up):
            found = await self._store.pending(self.model, number - 1, 1)
            if not found or found[0].id != number:
                del self._given_up[number]

    @property
    def _name(self) -> str:
        return f"embedded_up_to:{self.model}"

    async def _find_mark(self) -> None:
        """Where to go on: below it every chunk has its vector."""
        if self._epoch != self._store.epoch:
            self._epoch = self._store.epoch
            self._given_up.clear()
            self.embedder.forget()
            self._mark = int(await self._store.meta(self._name) or 0)
