"""Gives all texts of a collection their vectors of one model, in the background or when somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

import structlog

from agentd.domain.health import Problem
from agentd.search.patience import PatientEmbedder

PROBE = "memory"  # what an embedder that works can embed
STRIKES = 2  # failures at one text, right after the probe worked: it is the text

log = structlog.get_logger()


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
