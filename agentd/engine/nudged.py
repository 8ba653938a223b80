"""Work that waits until something happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger()


class Nudged:
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
