"""Work that waits: for a nudge, several of which count once, or for the next day."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import structlog

from agentd.core.errors import AgentdError
from agentd.core.health import Problem
from agentd.core.ports import Clock

log = structlog.get_logger()

FIRST = 600.0  # seconds after the start: what a start has to do comes before
DAY = 86_400.0
AGAIN = 3_600.0  # seconds after a failure


class CoalescingWorker:
    """Does its work once for all nudges that came since it last began. A failure is logged, and the
    next nudge tries again.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        self._name = name
        self._work = work
        self._wanted = asyncio.Event()

    def nudge(self) -> None:
        """Ask for the work. Never blocks."""
        self._wanted.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._work()
            except Exception:
                # Whoever nudged went on long ago; what was to be done ahead is done in its time.
                log.exception("nudged_work_failed", work=self._name)


class Daily:
    """Does its work some minutes after the start and then a day after it was last done. However long
    the machine slept, it is done once.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[object]], clock: Clock) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._wakes: float | None = None  # of the monotonic clock
        self._failure: Problem | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        pause = FIRST
        while True:
            self._wakes = self._clock.monotonic() + pause
            await self._clock.sleep(pause)
            pause = DAY if await self._done() else AGAIN

    @property
    def next_due(self) -> datetime | None:
        """When it works next, if the machine does not sleep; None before it runs."""
        if self._wakes is None:
            return None
        wait = max(0.0, self._wakes - self._clock.monotonic())
        return self._clock.now() + timedelta(seconds=wait)

    async def now(self) -> None:
        """Do the work at once; when it is due stays as it is. Raises what the work raises."""
        await self._work()
        self._failure = None

    def problems(self) -> tuple[Problem, ...]:
        """Why it could not be done the last time."""
        return (self._failure,) if self._failure else ()

    async def _done(self) -> bool:
        try:
            await self._work()
        except AgentdError as error:
            log.warning("daily_work_failed", work=self._name, reason=error.reason)
            self._failure = Problem(f"{self._name}_failed", error.message, error.cure)
        except Exception:
            # Nobody waits for it, and what it leaves undone it does the next time.
            log.exception("daily_work_crashed", work=self._name)
            text = f"The daily work of {self._name} broke."
            self._failure = Problem(f"{self._name}_failed", text, "Read the log: `agentd logs`.")
        else:
            self._failure = None
        return self._failure is None
