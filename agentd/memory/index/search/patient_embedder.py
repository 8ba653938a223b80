"""An embedder with health tracking: answers are checked, failures cause a pause, and batches adapt
in size to what the embedder can do in time. All searches that use it share its state.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from itertools import chain
from math import isfinite

import structlog

from agentd.core.errors import EmbedderFault
from agentd.core.health import Problem
from agentd.core.ports import Clock, Embedder

log = structlog.get_logger()

FIRST, MOST = 16, 128  # texts in a batch, at first and at most
SECONDS = 120.0  # for one batch
QUICK = SECONDS / 4  # a batch that takes longer does not double the next
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds after failures in a row, doubling
LATE = 3  # late answers to queries in a row from which others stand in
LASTING = 300.0  # seconds of late answers that are a problem to tell
FEWER = 8  # divisor of the batch after a failure; a quick success doubles it
_MOST_HALF = 65504.0  # of float16


class PatientEmbedder:
    """An embedder and its health: `problem` says why it fails, `size` how many texts the next batch
    should have. A failed batch is to be tried again in smaller ones.
    """

    def __init__(self, embedder: Embedder, clock: Clock) -> None:
        self.problem: Problem | None = None  # why it fails; None while it works
        self.size = FIRST  # texts in the next batch; starts small, to find out how slow it is
        self.has_answered = False
        self._late = 0  # queries in a row that it did not answer in time
        self._late_since = 0.0  # monotonic second of the first of them
        self._waited = 0.0  # seconds that the last of them was given
        self._embedder = embedder
        self._clock = clock
        self._resume = 0.0
        self._pause = FIRST_PAUSE

    @property
    def model(self) -> str:
        """The identity of the embedder."""
        return self._embedder.model

    @property
    def dimension(self) -> int:
        """The number of values in a vector."""
        return self._embedder.dimension

    @property
    def pause(self) -> float:
        """Seconds until the embedder may be asked again after a failure."""
        return max(0.0, self._resume - self._clock.monotonic())

    @property
    def fails(self) -> bool:
        """Whether the embedder is down, or too slow for queries: then others stand in for it."""
        return self.problem is not None or self._late >= LATE

    def was_late(self, seconds: float) -> None:
        """Record that a query was not answered within `seconds`."""
        self._late_since = self._late_since if self._late else self._clock.monotonic()
        self._late += 1
        self._waited = seconds

    def problems(self) -> tuple[Problem, ...]:
        """Return why others stand in for the embedder; empty if it works, or has been too slow for
        less than LASTING: a busy start makes it so.
        """
        if self.problem is not None:
            return (self.problem,)
        if not self.fails or self._clock.monotonic() - self._late_since < LASTING:
            return ()
        text = (
            f"{self.model} took longer than {self._waited:g} s for each of the last "
            f"{self._late} questions"
        )
        cure = "raise query_timeout_ms in [memory_search], or choose a quicker embedder"
        return (Problem("embedder_slow", text, cure),)

    async def ask(self, texts: Sequence[str], *, query: bool) -> Sequence[bytes]:
        """Return the vectors of texts that a search needs. Raises EmbedderFault."""
        try:
            found = await self._embed_checked(texts, query=query)
        except EmbedderFault as fault:
            self._fail(fault)
            raise
        self._recover()
        self._late = 0
        return found

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes] | None:
        """Return the vectors, in stored form, of at most `size` texts; None if the embedder
        fails.
        """
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(SECONDS):
                found = await self._embed_checked(texts, query=False)
            stored = await asyncio.to_thread(to_float16, found)
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
        """Clear the failure: a single text was its cause."""
        self.problem = None

    async def _embed_checked(self, texts: Sequence[str], *, query: bool) -> Sequence[bytes]:
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
    """Wrap each embedder in a PatientEmbedder."""
    return tuple(PatientEmbedder(embedder, clock) for embedder in embedders)


def to_float16(vectors: Sequence[bytes]) -> list[bytes]:
    """Convert float32 vectors of one length to the stored form, float16, whose rounding error is
    far below any model's error. Needs no numpy. Raises EmbedderFault for numbers that are not
    finite or too large.
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
