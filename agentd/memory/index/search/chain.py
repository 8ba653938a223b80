"""The embedders of a collection in order of preference: chooses which one answers a query, and
which vectors are kept in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import AgentdError, EmbedderFault
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.search import IndexState, SearchShortfall
from agentd.memory.index.search.backfill import Backfill

log = structlog.get_logger()


WARMING = 1.5  # seconds that a model may take for its first answer
FEW = 256  # texts without a vector; more than this are left to the background
GATHER = 5.0  # seconds to collect new texts while nobody searches
AGAIN = 60.0  # seconds until embedding is retried after a storage error
LATE = 60.0  # seconds without vectors after which a problem is reported
STANDING_IN = 600.0  # seconds after a model's last answer for which its vectors stay in memory


class AskedEmbedder(Struct, frozen=True):
    """The vectors of a query, None where no embedder answers, and the `model` that made them.
    `lack` is the SearchShortfall of the search, "" for none.
    """

    vectors: Sequence[bytes] | None
    model: str
    lack: str


class EmbedderChain:
    """Asks the embedders of `backfills` in order of preference, each for at most `seconds`; the
    last should be fast. An embedder that has to load its model gets at least `warming` seconds, the
    better ones only with `waits`.

    All texts get vectors of the best embedder, and of the last, which answers until the best has
    them. Those in between are fallbacks: they get texts only while all before them fail, because
    services charge for each text.
    """

    def __init__(
        self,
        backfills: Sequence[Backfill],
        clock: Clock,
        seconds: float,
        *,
        warming: float = WARMING,
        waits: bool = True,
    ) -> None:
        self._backfills = tuple(backfills)
        self._wakes = tuple(asyncio.Event() for _ in self._backfills)
        self._clock = clock
        self._seconds = seconds
        self._warming = warming
        self._waits = waits
        self._lacking_since: float | None = None
        self._is_asked = False  # whether there was a search
        self._answered: dict[str, float] = {}  # time of each model's last answer
        self._tasks: asyncio.TaskGroup | None = None  # while it runs
        self._filling: dict[str, asyncio.Task[None]] = {}  # by model

    @property
    def wanted(self) -> frozenset[str]:
        """The models whose vectors should be in memory: the best one that has embedded nearly all
        texts, and those that answered recently, since they stand in for one that is slow or down.
        """
        now = self._clock.monotonic()
        lately = {model for model, at in self._answered.items() if now - at < STANDING_IN}
        best = [backfill.model for backfill in self._backfills if backfill.left <= FEW][:1]
        return frozenset({*lately, *best})

    @property
    def left(self) -> int:
        """How many texts had no vector of the best embedder at the last count."""
        return self._backfills[0].left if self._backfills else 0

    async def run(self) -> None:
        """Embed new texts until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for backfill, wake in zip(self._backfills, self._wakes, strict=True):
                    wake.set()
                    self._tasks.create_task(self._embed(backfill, wake))
        finally:
            self._tasks = None

    def notice(self) -> None:
        """Have new texts embedded."""
        for backfill, wake in zip(self._backfills, self._wakes, strict=True):
            backfill.notice()
            wake.set()

    async def fill(self) -> None:
        """Embed all texts, as far as the embedders can. Raises StorageError."""
        for backfill in (*self._backfills[-1:], *self._backfills[:-1]):
            if self._is_wanted(backfill):
                await backfill.fill()

    async def fill_quickest(self) -> None:
        """Embed all texts with the last embedder. Raises StorageError."""
        for backfill in self._backfills[-1:]:
            await backfill.fill()

    async def catch_up(self, seconds: float) -> None:
        """Wait, for at most `seconds`, until the best embedder has embedded all but a few texts.
        Raises StorageError.
        """
        for backfill in self._backfills[:1]:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    if await backfill.look() > FEW:
                        await backfill.fill()

    async def vectors(
        self, texts: Sequence[str], seconds: float | None = None, *, query: bool = True
    ) -> AskedEmbedder:
        """Return vectors from the best embedder that answers in time: of queries, or without
        `query` of texts to be compared with those of the collection. Raises StorageError.
        """
        reason, self._is_asked = "", True
        for backfill in self._backfills:
            if backfill.embedder.pause:
                reason = SearchShortfall.EMBEDDER_DOWN
                continue
            found, is_late = None, False
            patience = self._patience(backfill, seconds or self._seconds)
            try:
                async with asyncio.timeout(patience):
                    left = await backfill.look()
                    if left > FEW and backfill is not self._backfills[-1]:
                        self._wake(backfill)
                        continue  # the next one answers until this one has embedded nearly all
                    few = await self._few(backfill, left)
                    found = await self._ask(backfill, texts, query=query)
                    if found is not None and few is not None:
                        await asyncio.shield(few)  # so that new texts are found, if that is quick
            except TimeoutError:
                is_late = True
            if found is None:
                if is_late:
                    backfill.embedder.was_late(patience)
                reason = SearchShortfall.EMBEDDER_SLOW if is_late else SearchShortfall.EMBEDDER_DOWN
                continue
            self._answered[backfill.model] = self._clock.monotonic()
            reason = reason or (SearchShortfall.VECTORS_MISSING if backfill.left else "")
            return AskedEmbedder(found, backfill.model, reason)
        return AskedEmbedder(None, "", reason)

    async def with_vectors(self, state: IndexState) -> IndexState:
        """Return the state of the index, completed with the state of its vectors. Raises
        StorageError.
        """
        if not self._backfills:
            return state
        left = [await backfill.look() for backfill in self._backfills]
        serving = next(
            (
                n
                for n, few in enumerate(left)
                if few <= FEW and not self._backfills[n].embedder.fails
            ),
            len(left) - 1,
        )
        lacks = bool(left[0]) and len(left) > 1  # the fast embedder's lack waits for a search
        now = self._clock.monotonic()
        self._lacking_since = (self._lacking_since or now) if lacks else None
        busy = any(backfill.is_busy for backfill in self._backfills)
        behind = busy or lacks
        return replace(
            state,
            embedder=self._backfills[serving].model,
            vectors=left[0],
            pending=left[0] if behind else 0,
            state="embedding" if behind else state.state,
            reason=self._reason(),
        )

    def _reason(self) -> str:
        """Return the SearchShortfall of a search at this moment, "" for none."""
        best = self._backfills[0]
        if best.embedder.fails:
            return (
                SearchShortfall.EMBEDDER_DOWN
                if best.embedder.problem
                else SearchShortfall.EMBEDDER_SLOW
            )
        return SearchShortfall.VECTORS_MISSING if best.left and len(self._backfills) > 1 else ""

    def problems(self) -> tuple[Problem, ...]:
        """Return the embedders that fail, the texts they fail at, and that texts have lacked
        vectors for long.
        """
        told = [problem for backfill in self._backfills for problem in backfill.problems()]
        since = self._lacking_since
        if since is not None and self._clock.monotonic() - since > LATE and not told:
            best = self._backfills[0]
            text = (
                f"{best.left} pieces have no vector of {best.model} yet: other words may miss them"
            )
            cure = "wait; `agentd memory status` tells how many are left"
            told.append(Problem("vectors_missing", text, cure))
        return tuple(told)

    def _patience(self, backfill: Backfill, seconds: float) -> float:
        """Return how many seconds the embedder may take. Models load when they are first asked."""
        if backfill is self._backfills[-1]:
            is_loading = not backfill.embedder.has_answered
        else:
            is_loading = self._waits and not any(b.embedder.has_answered for b in self._backfills)
        return max(seconds, self._warming) if is_loading else seconds

    def _is_wanted(self, backfill: Backfill) -> bool:
        """Whether all texts are to get this embedder's vectors: for a fallback, while all before it
        fail.
        """
        better = self._backfills[: self._backfills.index(backfill)]
        is_last = backfill is self._backfills[-1]
        return is_last or all(each.embedder.fails for each in better)

    def _wake(self, backfill: Backfill) -> None:
        self._wakes[self._backfills.index(backfill)].set()

    async def _few(self, backfill: Backfill, left: int) -> asyncio.Task[None] | None:
        """Return a task that embeds the texts left if they are few; it continues even if nobody
        waits for it. None if none or too many are left, or if they were embedded at once because
        `run` is not running.
        """
        if not 0 < left <= FEW:
            if left:
                self._wake(backfill)
            return None
        if self._tasks is None:
            await self._filled(backfill, left)
            return None
        task = self._filling.get(backfill.model)
        if task is None or task.done():
            task = self._tasks.create_task(self._filled(backfill, left))
            self._filling[backfill.model] = task
        return task

    async def _filled(self, backfill: Backfill, left: int) -> None:
        """Embed so many texts. An error ends no search: the background tries again."""
        try:
            await backfill.fill(left)
        except AgentdError as error:
            log.warning("embedding_failed", reason=error.reason)
            self._wake(backfill)

    async def _ask(
        self, backfill: Backfill, texts: Sequence[str], *, query: bool
    ) -> Sequence[bytes] | None:
        """Return the vectors; None if the embedder fails, or is paused after a failure."""
        if backfill.embedder.pause:
            return None
        try:
            return await backfill.embedder.ask(texts, query=query)
        except EmbedderFault:
            return None

    async def _embed(self, backfill: Backfill, wake: asyncio.Event) -> None:
        while True:
            await wake.wait()
            wake.clear()
            pause = 0.0
            try:
                if await self._is_due(backfill):
                    await backfill.fill(is_wanted=partial(self._is_wanted, backfill))
                pause = backfill.embedder.pause
            except AgentdError as error:
                log.warning("embedding_failed", reason=error.reason)
                pause = AGAIN
            if pause:
                await self._clock.sleep(pause)
                wake.set()

    async def _is_due(self, backfill: Backfill) -> bool:
        """Whether there are texts to embed now. A few are collected for a moment first; the fast
        embedder, which runs in this process, waits for the first search, as it may never be needed.
        """
        left = await backfill.look()
        if not self._is_wanted(backfill):
            return False
        if not 0 < left <= FEW:
            return bool(left)
        if backfill is self._backfills[-1] and not self._is_asked:
            return False
        if not self._is_asked:
            await self._clock.sleep(GATHER)
        return True
