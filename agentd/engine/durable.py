"""Durable writes: two in one commit, and a write that waits while the disk is full."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import structlog

from agentd.core.errors import StorageError, StorageFull
from agentd.core.ports import Clock

log = structlog.get_logger()
T = TypeVar("T")
P = ParamSpec("P")

POLL_SECONDS = 1.0


async def when_space(
    clock: Clock, step: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return the result of `step(*args, **kwargs)`. While the disk is full, repeat the step every
    second.

    An accepted message must not be lost for want of space, and an answer that has been paid for is
    kept in memory until it can be stored. The step must be one transaction. Raises what the step
    raises, except StorageFull.
    """
    told = False
    while True:
        try:
            result = await step(*args, **kwargs)
        except StorageFull as error:
            if not told:
                log.warning("disk_full", reason=error.reason, action="waiting for space")
                told = True
            await clock.sleep(POLL_SECONDS)
        else:
            if told:
                log.info("disk_has_space")
            return result


async def write_beside(first: Awaitable[T], second: Callable[[], Awaitable[None]]) -> T:
    """Return the result of `first`, a write; `second` is written beside it. The database may put
    both into one commit, and one may be stored without the other.

    Raises what `first` raises, not in a group. A StorageError of `second` is only logged: it must
    not hide that the first write was stored.
    """

    async def beside() -> None:
        try:
            await second()
        except StorageError as error:
            log.warning("not_stored", reason=error.reason, action="left out")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(beside())
            return await first
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
