"""Wakes the heartbeat through APScheduler; nobody else imports it.

APScheduler compares wall times, and its timer does not notice a clock that is set back: it would
sleep for the whole step. So it is told to wake within a minute at the latest, and a keeper on
monotonic time re-arms it when that has not happened. What is due is never its decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from agentd.domain.health import Problem
from agentd.errors import AgentdError
from agentd.ports import Clock

log = structlog.get_logger()

_LONGEST_SLEEP = 60.0
_LATE = 3 * _LONGEST_SLEEP
_DRAIN = 2.0  # a stop may take five seconds in all
_WAKE = "wake"


class Scheduler:
    """Calls `tick` when `next_due` says so and at least once a minute, one call at a time.

    Entering starts it. Leaving lets a running tick end, for a moment, then cancels it. A tick that
    raises is logged and changes nothing about the next.
    """

    def __init__(
        self,
        clock: Clock,
        tick: Callable[[], Awaitable[None]],
        next_due: Callable[[], Awaitable[datetime | None]],
        *,
        longest_sleep: float = _LONGEST_SLEEP,
        drain: float = _DRAIN,
    ) -> None:
        self._clock = clock
        self._tick = tick
        self._next_due = next_due
        self._longest_sleep = longest_sleep
        self._drain = drain
        self._aps: AsyncIOScheduler | None = None
        self._tasks = asyncio.TaskGroup()
        self._keeper: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._woken_at: float | None = None
        self._is_failing = False

    @property
    def name(self) -> str:
        """For the watchdog."""
        return "scheduler"

    async def __aenter__(self) -> Self:
        self._aps = AsyncIOScheduler(timezone=UTC, event_loop=asyncio.get_running_loop())
        self._aps.add_job(
            self._wake,
            # Keeps the job alive; every wake sets the time of the next one itself.
            IntervalTrigger(days=1, timezone=UTC),
            id=_WAKE,
            next_run_time=self._clock.now(),
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,  # however late: after a suspend everything is
        )
        self._woken_at = self._clock.monotonic()
        self._aps.start()
        await self._tasks.__aenter__()
        self._keeper = self._tasks.create_task(self._keep(), name="scheduler-keeper")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        aps, keeper = self._aps, self._keeper
        assert aps is not None
        assert keeper is not None
        keeper.cancel()
        aps.remove_job(_WAKE)
        try:
            async with asyncio.timeout(self._drain):
                await self._idle.wait()
        except TimeoutError:
            log.warning("tick_cancelled_by_stop")
        finally:
            # APScheduler's executor cancels what still runs, whatever it is asked to wait for; the
            # shutdown itself happens in the loop's next round.
            aps.shutdown(wait=False)
            self._aps = None
            await self._tasks.__aexit__(None, None, None)
            await self._idle.wait()

    def poke(self) -> None:
        """Wake now: the due time has changed. A running tick looks at it anyway when it ends."""
        if self._idle.is_set():
            self._arm(0.0)

    def problems(self) -> tuple[Problem, ...]:
        """A schedule that has stopped waking."""
        if self._is_alive():
            return ()
        return (
            Problem("scheduler_stalled", "the scheduler no longer wakes", "run `agentd restart`"),
        )

    async def prove(self) -> None:
        """Return if the scheduler has woken lately or is at work. Raises AgentdError if it is stuck."""
        if not self._is_alive():
            raise AgentdError("the scheduler no longer wakes", cure="run `agentd restart`")

    def _is_alive(self) -> bool:
        if self._woken_at is None or not self._idle.is_set():
            return self._woken_at is not None
        return self._clock.monotonic() - self._woken_at < _LATE

    async def _wake(self) -> None:
        self._woken_at = self._clock.monotonic()
        self._idle.clear()
        delay = self._longest_sleep
        try:
            await self._tick()
            due = await self._next_due()
            if due is not None:
                delay = min(delay, (due - self._clock.now()).total_seconds())
            if self._is_failing:
                log.info("tick_recovered")
            self._is_failing = False
        except Exception:  # the schedule outlives any one tick; the next comes within a minute
            log.exception("tick_failed", again=self._is_failing)
            self._is_failing = True
        finally:
            self._woken_at = self._clock.monotonic()
            self._idle.set()
        # A due time that stays in the past (a lane is busy) must not become a busy loop.
        self._arm(max(delay, min(1.0, self._longest_sleep)))

    def _arm(self, delay: float) -> None:
        if self._aps is not None and self._aps.get_job(_WAKE) is not None:
            at = self._clock.now() + timedelta(seconds=delay)
            self._aps.modify_job(_WAKE, next_run_time=at)

    async def _keep(self) -> None:
        """Wake APScheduler when its own timer has slept too long."""
        while True:
            await self._clock.sleep(self._longest_sleep)
            assert self._woken_at is not None
            slept = self._clock.monotonic() - self._woken_at
            if self._idle.is_set() and slept >= self._longest_sleep * 1.5:
                log.warning("clock_set_back", slept_s=round(slept))
                self._arm(0.0)
