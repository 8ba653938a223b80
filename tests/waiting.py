"""Waiting for what another process or thread does: the one place where tests let real time pass by
looking again and again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

PATIENCE = 60.0  # seconds that anything may take on a busy machine
_STEP = 0.02  # seconds between two looks

T = TypeVar("T")


def soon(look: Callable[[], T], patience: float = PATIENCE) -> T:
    """What `look` gives as soon as that is something; the last it gave when the time is over."""
    end = time.monotonic() + patience
    while not (given := look()) and time.monotonic() < end:
        time.sleep(_STEP)
    return given


def wait_until(holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Return when `holds()` is true; AssertionError after `patience` seconds."""
    assert soon(holds, patience), f"not within {patience:g} s: {what}"


async def until(holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """The same for those who can await."""
    end = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < end, f"not within {patience:g} s: {what}"
        await asyncio.sleep(_STEP)


async def until_told(
    ask: Callable[[], Awaitable[object]], what: str, patience: float = PATIENCE
) -> None:
    """The same where to look is to ask somebody, who needs the processor between two looks."""
    end = time.monotonic() + patience
    while not await ask():
        assert time.monotonic() < end, f"not within {patience:g} s: {what}"
        await asyncio.sleep(_STEP)
