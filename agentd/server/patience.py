"""Time limits that run on the Clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentd.ports import Clock


@asynccontextmanager
async def time_limit(group: asyncio.TaskGroup, clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError inside the block after `seconds` of the clock. The timer lives in `group`."""
    async with asyncio.timeout(None) as scope:
        timer = group.create_task(_expire(scope, clock, seconds))
        try:
            yield
        finally:
            timer.cancel()


async def _expire(scope: asyncio.Timeout, clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)
    scope.reschedule(asyncio.get_running_loop().time())
