"""Time limits by the Clock for work that depends on others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from agentd.core.ports import Clock

T = TypeVar("T")


class Pauses:
    """Blocks of time that do not count towards a limit. They may overlap."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open = 0
        self._since = 0.0
        self.seconds = 0.0  # total length of the finished blocks
        self.over = asyncio.Event()
        self.over.set()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the limit's time for as long as the block runs."""
        if not self._open:
            self._since = self._clock.monotonic()
            self.over.clear()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self.seconds += self._clock.monotonic() - self._since
                self.over.set()


async def within(
    clock: Clock, seconds: float, work: Awaitable[T], pauses: Pauses | None = None
) -> T:
    """Await `work` in this very task and return its result. Raises TimeoutError after `seconds` of
    the clock, without the time of `pauses`, and whatever the work raises.
    """
    try:
        async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
            timer = group.create_task(_expire(clock, seconds, limit, pauses or Pauses(clock)))
            try:
                return await work
            finally:
                timer.cancel()
    except ExceptionGroup as group_of_one:  # the timer never fails, so this is the work's error
        raise group_of_one.exceptions[0] from None


async def first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of the coroutines has finished; the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait) for wait in waits]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()


async def _expire(clock: Clock, seconds: float, limit: asyncio.Timeout, pauses: Pauses) -> None:
    begun = clock.monotonic()
    while (left := begun + seconds + pauses.seconds - clock.monotonic()) > 0:
        await clock.sleep(left)
        await pauses.over.wait()
    limit.reschedule(0)
