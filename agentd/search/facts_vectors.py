"""Gives every fact its vector of one model, in the background or when somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice

from agentd.domain.fact import Fact
from agentd.domain.health import Problem
from agentd.ports import Clock, Embedder
from agentd.search.patience import PatientEmbedder, TextFault, named

Keep = Callable[[str, Mapping[str, bytes]], Awaitable[None]]


class FactVectors:
    """One embedder and the texts that it has still to see.

    `keep` is called with vectors by fact id while nobody can take facts away: of a fact that went
    while its text was with the embedder nothing comes back. A text that fails while others work is
    left without a vector and named, until the next start.
    """

    def __init__(self, embedder: Embedder, clock: Clock, keep: Keep, writing: asyncio.Lock) -> None:
        self.embedder = PatientEmbedder(embedder, clock)
        self._keep = keep
        self._writing = writing
        self._working = asyncio.Lock()
        self._texts: dict[str, str] = {}
        self._given_up: dict[str, str] = {}  # texts, too

    @property
    def model(self) -> str:
        """The embedder's."""
        return self.embedder.model

    @property
    def left(self) -> int:
        """How many facts have no vector."""
        return len(self._texts)

    def problems(self) -> tuple[Problem, ...]:
        """Why the embedder fails, and the facts that it could not embed."""
        told = [self.embedder.problem] if self.embedder.problem else []
        if self._given_up:
            facts = named(list(self._given_up))
            told.append(
                Problem(
                    "text_not_embedded",
                    f"{self.model} fails at what these facts say: {facts}; words alone find them",
                    "say it in other words; a restart of agentd tries them again",
                )
            )
        return tuple(told)

    def add(self, facts: Iterable[Fact]) -> None:
        """These need vectors, but for texts that the embedder fails at."""
        for fact in facts:
            if self._given_up.get(fact.id) != fact.text:
                self._given_up.pop(fact.id, None)
                self._texts[fact.id] = fact.text

    def remove(self, fact_ids: Iterable[str]) -> None:
        """These no longer do, those that are being embedded included."""
        for fact_id in fact_ids:
            self._texts.pop(fact_id, None)
            self._given_up.pop(fact_id, None)

    async def fill(self) -> None:
        """Give vectors to all that have none, as far as the embedder can. Raises StorageError."""
        async with self._working:
            while self._texts and not self.embedder.pause:
                if not await self._done_with(dict(islice(self._texts.items(), self.embedder.size))):
                    return

    async def _done_with(self, batch: Mapping[str, str]) -> bool:
        """Whether nothing is left to do for these: they have vectors, or the only one is given up."""
        try:
            vectors = await self.embedder.embed({(i, text): text for i, text in batch.items()})
        except TextFault:
            for fact_id, text in batch.items():
                if self._texts.get(fact_id) == text:
                    self._given_up[fact_id] = self._texts.pop(fact_id)
            return True
        if vectors is None:
            return False
        await self._take_in(batch, vectors)
        return True

    async def _take_in(self, batch: Mapping[str, str], vectors: Sequence[bytes]) -> None:
        async with self._writing:
            pairs = zip(batch.items(), vectors, strict=True)
            still = {
                fact_id: vector
                for (fact_id, text), vector in pairs
                if self._texts.get(fact_id) == text
            }
            if still:
                await self._keep(self.model, still)
            self.remove(still)
