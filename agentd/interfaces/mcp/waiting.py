"""Waiting on the outside: until the clock says that it is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from agentd.core.ports import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """The result of work that runs in this very task. Raises TimeoutError after `seconds`, and what the
    work raises.
    """
    try:
        async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
            timer = group.create_task(_expire(clock, seconds, limit))
            try:
                return await work
            finally:
                timer.cancel()
    except ExceptionGroup as group_of_one:  # the timer fails never, the work once
        raise group_of_one.exceptions[0] from None


async def first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of them has; the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait) for wait in waits]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()


async def _expire(clock: Clock, seconds: float, limit: asyncio.Timeout) -> None:
    await clock.sleep(seconds)
    limit.reschedule(0)
