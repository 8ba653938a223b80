"""Gives every fact its vector of one model, in the background or when somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice

import structlog

from agentd.domain.fact import Fact
from agentd.domain.health import Problem
from agentd.errors import EmbedderFault
from agentd.ports import Clock, Embedder
from agentd.search.culprit import PROBE, Culprit, named

BATCH = 128
PATIENCE = 120.0  # seconds for one batch
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after failures in a row, doubling

log = structlog.get_logger()

Keep = Callable[[str, Mapping[str, bytes]], Awaitable[None]]


class FactVectors:
    """One embedder and the texts that it has still to see.

    `keep` is called with vectors by fact id while nobody can take facts away: of a fact that went
    while its text was with the embedder nothing comes back. A text that fails while others work is
    left without a vector and named, until the next start.
    """

    def __init__(self, embedder: Embedder, clock: Clock, keep: Keep, writing: asyncio.Lock) -> None:
        self.embedder = embedder
        self.problem: Problem | None = None
        self.has_answered = False
        self._clock = clock
        self._keep = keep
        self._writing = writing
        self._working = asyncio.Lock()
        self._texts: dict[str, str] = {}
        self._given_up: dict[str, str] = {}  # texts, too
        self._culprit = Culprit(BATCH)
        self._resume = 0.0
        self._pause = FIRST_PAUSE

    @property
    def model(self) -> str:
        """The embedder's."""
        return self.embedder.model

    @property
    def left(self) -> int:
        """How many facts have no vector."""
        return len(self._texts)

    @property
    def pause(self) -> float:
        """How many seconds it is left alone after a failure."""
        return max(0.0, self._resume - self._clock.monotonic())

    def problems(self) -> tuple[Problem, ...]:
        """Why the embedder fails, and the facts that it could not embed."""
        told = [self.problem] if self.problem else []
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
            while self._texts and not self.pause:
                if not await self._done_with(dict(islice(self._texts.items(), self._culprit.size))):
                    return

    async def ask(self, texts: Sequence[str], *, query: bool) -> Sequence[bytes]:
        """The vectors of what is looked for. Raises EmbedderFault."""
        return await self._embed(texts, query=query)

    def give_up(self, seconds: float) -> None:
        """It was waited for in vain, and is left alone for a while."""
        self._fail(EmbedderFault(f"{self.model} gave no vector in {seconds:g} seconds"))

    async def _done_with(self, batch: Mapping[str, str]) -> bool:
        """Whether nothing is left to do for these: they have vectors, or the only one is given up."""
        texts = list(batch.items())
        if self._culprit.is_suspect(texts) and await self._found([PROBE]) is None:
            return False
        vectors = await self._found(list(batch.values()))
        if vectors is not None:
            self._culprit.clear()
            await self._take_in(batch, vectors)
            return True
        if not self._culprit.blame(texts):
            return False
        fact_id, text = texts[0]
        if self._texts.get(fact_id) == text:
            self._given_up[fact_id] = self._texts.pop(fact_id)
            log.warning("text_not_embedded", model=self.model, fact=fact_id)
        self.problem = None  # it is the text's
        return True

    async def _found(self, texts: Sequence[str]) -> Sequence[bytes] | None:
        """The vectors of texts of facts; None when the embedder fails."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._embed(texts, query=False)
        except TimeoutError:
            self._fail(EmbedderFault(f"{self.model} gave no vectors in {PATIENCE:.0f} seconds"))
        except EmbedderFault:
            pass  # it is a problem already
        return None

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

    async def _embed(self, texts: Sequence[str], *, query: bool) -> Sequence[bytes]:
        try:
            found = await self.embedder.embed(texts, query=query)
            wanted = 4 * self.embedder.dimension
            if len(found) != len(texts) or any(len(vector) != wanted for vector in found):
                raise EmbedderFault(
                    f"{self.model} did not give {len(texts)} vectors of"
                    f" {self.embedder.dimension} numbers",
                    cure="name another model in [memory_search], or set provider",
                )
        except EmbedderFault as fault:
            self._fail(fault)
            raise
        self.problem = None
        self.has_answered = True
        self._pause = FIRST_PAUSE
        return found

    def _fail(self, fault: EmbedderFault) -> None:
        self.problem = Problem("embedder_down", fault.message, fault.cure)
        self._resume = self._clock.monotonic() + self._pause
        log.warning("embedder_failed", model=self.model, error=fault.message, again_in=self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
