"""The user's wish to stop a running turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Interrupted(Exception):
    """The user wants this turn to end: control flow of the engine, never shown."""


class Interrupt:
    """A switch that ends waits on the model and on the user, but never a write half done."""

    def __init__(self) -> None:
        self.requested = False
        self._guards: set[asyncio.Timeout] = set()

    def request(self) -> None:
        """End every guarded wait now, and every later one at once."""
        self.requested = True
        for guard in self._guards:
            guard.reschedule(0)

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """A block that ends with Interrupted as soon as the user wants to stop.

        Raises Interrupted there, and at once if he has wanted it before.
        """
        if self.requested:
            raise Interrupted
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._guards.add(scope)
                yield
        except TimeoutError:
            if scope.expired():
                raise Interrupted from None
            raise
        finally:
            self._guards.discard(scope)
