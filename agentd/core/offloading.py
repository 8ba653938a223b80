"""Runs blocking work in a thread, so that it does not hold up the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sized
from typing import TypeVar

LIGHT = 32 * 1024  # characters that may be processed on the event loop
_ROWS = 500  # rows of a conversation that may be processed on the event loop

_T = TypeVar("_T")


async def offload(size: int, work: Callable[[], _T], *, light: int = LIGHT) -> _T:
    """Return the result of `work`, which runs in a thread if its input `size` exceeds `light`.
    Raises what `work` raises.
    """
    return work() if size <= light else await asyncio.to_thread(work)


async def offload_rows(rows: Sized, work: Callable[[], _T]) -> _T:
    """Return the result of `work` on all rows of a conversation, or on as many messages or parts of
    a page; it runs in a thread if they are many. Raises what `work` raises.
    """
    return await offload(len(rows), work, light=_ROWS)


async def to_the_end(work: Callable[[], _T]) -> _T:
    """Return the result of blocking `work`, run in a thread. A cancelled caller still waits until
    it has ended, because a thread cannot be stopped: while the file still changes, a lock held
    around this must not be released and the result must not be inspected.
    """
    return await until_done(asyncio.get_running_loop().run_in_executor(None, work))


async def until_done(running: asyncio.Future[_T]) -> _T:
    """Return the result of what runs in a thread, waiting for it like `to_the_end`."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            # A further cancellation changes nothing, and no caller is left to receive an error.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # retrieved, so that asyncio does not log it as never retrieved
        raise
