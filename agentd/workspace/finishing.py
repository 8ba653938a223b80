"""Work in a thread that nobody walks away from."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Callable[[], T]) -> T:
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
