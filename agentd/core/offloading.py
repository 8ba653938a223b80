"""Work that would keep the event loop from everything else, done in a thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

LIGHT = 32 * 1024  # characters that are gone through at once; more would keep others waiting
ROWS = 500  # of a conversation, likewise

_T = TypeVar("_T")


async def offload(size: int, work: Callable[[], _T], *, light: int = LIGHT) -> _T:
    """The result of `work` on so much input: of more than `light`, in a thread. Raises what it raises."""
    return work() if size <= light else await asyncio.to_thread(work)


async def to_the_end(work: Callable[[], _T]) -> _T:
    """The result of blocking `work`, done in a thread. Who is cancelled meanwhile leaves only when it
    has ended, since a thread cannot be stopped: a lock that is held around this must not be given
    back, nor the outcome looked at, while the file still changes.
    """
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            # Being cancelled again changes nothing, and nobody is left to tell a failure to.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # looked at, so that it is not logged as one that was forgotten
        raise
