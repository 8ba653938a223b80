"""The embedders of an index, from the best on: which answers, and whose vectors are worth their room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from agentd.domain.health import Problem
from agentd.domain.memory import IndexState
from agentd.domain.search import Lack
from agentd.errors import AgentdError, EmbedderFault
from agentd.ports import Clock
from agentd.search.backfill import Backfill

WARMING = 1.5  # seconds that a model has to answer when it is first asked
FEW = 256  # chunks without a vector: more are left to the background
STANDING_IN = 600.0  # seconds after its last answer that a model's vectors stay in memory

log = structlog.get_logger()


class Chain:
    """`backfills` are asked from the best on, each for so many `seconds`; the last should be quick."""

    def __init__(self, backfills: Sequence[Backfill], clock: Clock, seconds: float) -> None:
        self._backfills = tuple(backfills)
        self._wakes = tuple(asyncio.Event() for _ in self._backfills)
        self._clock = clock
        self._seconds = seconds
        self._answered: dict[str, float] = {}  # when each model did last
        self._tasks: asyncio.TaskGroup | None = None  # while it runs
        self._filling: dict[str, asyncio.Task[AgentdError | None]] = {}  # by model

    @property
    def wanted(self) -> frozenset[str]:
        """The models whose vectors are to be in memory: of the best one that has seen all, and of those
        that answered a moment ago, as they stand in for one that is slow or down.
        """
        now = self._clock.monotonic()
        lately = {model for model, at in self._answered.items() if now - at < STANDING_IN}
        best = [backfill.model for backfill in self._backfills if backfill.left <= FEW][:1]
        return frozenset({*lately, *best})

    async def run(self, is_asked: Callable[[], bool]) -> None:
        """Embed what is new until cancelled; a few chunks only if somebody searches at all."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for backfill, wake in zip(self._backfills, self._wakes, strict=True):
                    wake.set()
                    self._tasks.create_task(self._embed(backfill, wake, is_asked))
        finally:
            self._tasks = None

    def notice(self) -> None:
        """There are new chunks."""
        for backfill, wake in zip(self._backfills, self._wakes, strict=True):
            backfill.notice()
            wake.set()

    async def fill(self) -> None:
        """Give vectors to all chunks, as far as the embedders can. Raises StorageError."""
        for backfill in reversed(self._backfills):
            await backfill.fill()

    async def fill_quickest(self) -> None:
        """Give them those of the last embedder. Raises StorageError."""
        for backfill in self._backfills[-1:]:
            await backfill.fill()

    async def vectors(self, queries: Sequence[str]) -> tuple[Sequence[bytes] | None, str, str]:
        """Vectors of the queries, the model that made them, and what this search has to do without."""
        # Models load when they are first asked.
        patience = self._seconds if self._answered else max(self._seconds, WARMING)
        reason, left = "", 0
        for backfill in self._backfills:
            if backfill.pause:
                reason = Lack.EMBEDDER_DOWN
                continue
            try:
                async with asyncio.timeout(patience):
                    left = await self._left(backfill)
                    if left > FEW and backfill is not self._backfills[-1]:
                        continue  # the next one answers until this one has seen all
                    found = None if backfill.pause else await backfill.ask(queries)
            except TimeoutError:
                reason = Lack.EMBEDDER_SLOW
                continue
            except EmbedderFault:
                found = None
            if found is None:
                reason = Lack.EMBEDDER_DOWN
                continue
            self._answered[backfill.model] = self._clock.monotonic()
            return found, backfill.model, reason or (Lack.VECTORS_MISSING if left else "")
        return None, "", reason

    async def told(self, state: IndexState) -> IndexState:
        """The state of an index with what is known of its vectors. Raises StorageError."""
        if not self._backfills:
            return state
        left = [await backfill.look() for backfill in self._backfills]
        serving = next(
            (n for n, few in enumerate(left) if few <= FEW and self._backfills[n].problem is None),
            len(left) - 1,
        )
        busy = any(backfill.is_busy for backfill in self._backfills)
        return replace(
            state,
            embedder=self._backfills[serving].model,
            vectors=left[0],
            pending=left[0] if busy else 0,
            state="embedding" if busy else state.state,
        )

    def problems(self) -> tuple[Problem, ...]:
        """Embedders that fail, and what they fail at."""
        return tuple(problem for backfill in self._backfills for problem in backfill.problems())

    async def _left(self, backfill: Backfill) -> int:
        """How many chunks have no vector after the few have got theirs."""
        left = await backfill.look()
        if 0 < left <= FEW:
            await self._fill_few(backfill, left)
        elif left:
            self._wakes[self._backfills.index(backfill)].set()
        return backfill.left

    async def _fill_few(self, backfill: Backfill, left: int) -> None:
        """Embed them; a search that stops waiting for that does not stop it."""
        if self._tasks is None:
            await backfill.fill(left)
            return
        task = self._filling.get(backfill.model)
        if task is None or task.done():
            task = self._tasks.create_task(_filled(backfill, left))
            self._filling[backfill.model] = task
        if (error := await asyncio.shield(task)) is not None:
            raise error

    async def _embed(
        self, backfill: Backfill, wake: asyncio.Event, is_asked: Callable[[], bool]
    ) -> None:
        while True:
            await wake.wait()
            wake.clear()
            try:
                left = await backfill.look()
                # A few wait for the first search: what loads the model may never be needed.
                if left > FEW or (left and is_asked()):
                    await backfill.fill()
            except AgentdError as error:
                log.warning("embedding_failed", reason=error.reason)  # the next change tries again
            if backfill.pause:
                await self._clock.sleep(backfill.pause)
                wake.set()


async def _filled(backfill: Backfill, left: int) -> AgentdError | None:
    """What went wrong, for whoever still waits: an error would end all that runs."""
    try:
        await backfill.fill(left)
    except AgentdError as error:
        return error
    return None
