"""One embedder, asked with patience: its answers are checked, after a failure it is left alone for a while,
and the one text that it fails at is found, so that all others get their vectors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import structlog

from agentd.domain.health import Problem
from agentd.errors import EmbedderFault
from agentd.ports import Clock, Embedder
from agentd.search.halves import packed

MOST = 128  # texts at once
SECONDS = 120.0  # for one batch
QUICK = SECONDS / 4  # what takes longer is not done for twice as many at once
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after failures in a row, doubling
FEWER = 8  # so many times fewer texts at once after a failure; twice as many after a success
PROBE = "memory"  # what an embedder that works can embed
STRIKES = 2  # failures at one text, right after the probe worked: it is the text
NAMED = 3  # texts that a problem names

log = structlog.get_logger()

K = TypeVar("K", bound=Hashable)


class TextFault(EmbedderFault):
    """The embedder works, but not for this one text."""


class PatientEmbedder:
    """`first` says how many texts to try at once to begin with: how slow an embedder is shows at them.

    What failed is to be tried again in smaller batches, until a text is alone. A text that failed alone is
    suspect: before it is tried again the embedder has to prove with PROBE that it works.
    """

    def __init__(self, embedder: Embedder, clock: Clock, first: int = MOST) -> None:
        self.problem: Problem | None = None  # why it fails; None while it works
        self.size = first  # texts to try at once
        self.has_answered = False
        self._embedder = embedder
        self._clock = clock
        self._resume = 0.0
        self._pause = FIRST_PAUSE
        self._suspect: Hashable = None
        self._strikes = 0

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

    async def ask(self, texts: Sequence[str], *, query: bool) -> Sequence[bytes]:
        """The vectors of what is looked for. Raises EmbedderFault."""
        try:
            found = await self._found(texts, query=query)
        except EmbedderFault as fault:
            self._fail(fault)
            raise
        self._recover()
        return found

    async def embed(self, batch: Mapping[K, str]) -> Sequence[bytes] | None:
        """The vectors, as they are stored, of texts by what tells them apart, at most `size` of them; None
        if the embedder fails. Raises TextFault when it fails at the only text of the batch and at nothing else.
        """
        names = list(batch)
        is_suspect = len(names) == 1 and names[0] == self._suspect
        if is_suspect and await self._answer([PROBE]) is None:
            return None
        begun = self._clock.monotonic()
        found = await self._answer(list(batch.values()))
        if found is not None:
            if self._clock.monotonic() - begun < QUICK:
                self.size = min(MOST, 2 * self.size)
            return found
        self.size = max(1, len(names) // FEWER)
        if len(names) == 1:
            self._suspect, self._strikes = names[0], self._strikes + 1 if is_suspect else 0
        if is_suspect and self._strikes >= STRIKES:
            self.problem = None  # it is the text's
            log.warning("text_not_embedded", model=self.model, text=str(names[0]))
            raise TextFault(f"{self.model} fails at one text")
        return None

    def give_up(self, seconds: float) -> None:
        """It was waited for in vain, and is left alone for a while."""
        self._fail(EmbedderFault(f"{self.model} gave no vectors in {seconds:g} seconds"))

    def forget(self) -> None:
        """What told texts apart tells them apart no longer."""
        self._suspect = None

    async def _answer(self, texts: Sequence[str]) -> Sequence[bytes] | None:
        try:
            async with asyncio.timeout(SECONDS):
                found = await self._found(texts, query=False)
            stored = await asyncio.to_thread(packed, found)
        except TimeoutError:
            self.give_up(SECONDS)
            return None
        except EmbedderFault as fault:
            self._fail(fault)
            return None
        self._recover()
        return stored

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


def named(places: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = len(places) - NAMED
    return ", ".join(places[:NAMED]) + (f" and {more} more" if more > 0 else "")
