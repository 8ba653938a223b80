"""Work that would keep the event loop from everything else, done in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

LIGHT = 32 * 1024  # characters that are gone through at once; more would keep others waiting
ROWS = 500  # of a conversation, likewise

_T = TypeVar("_T")


async def offload(size: int, work: Callable[[], _T], *, light: int = LIGHT) -> _T:
    """The result of `work` on so much input: of more than `light`, in a thread. Raises what it raises."""
    return work() if size <= light else await asyncio.to_thread(work)
