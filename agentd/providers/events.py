"""Hearing a stream to its end: within a time limit, and closed however it is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import TypeVar

from agentd.core.errors import ProviderError
from agentd.providers.faults import failure

E = TypeVar("E")

_TURN = 0.01  # seconds of events that have come, before others have theirs
_LINGER = 0.5  # seconds that a complete answer waits for the end of its response


async def limited(events: AsyncGenerator[E, None], longest: timedelta) -> AsyncGenerator[E, None]:
    """The events, as long as the whole call takes no longer than that.

    The limit is set anew around every wait, for one that spanned a yield could cancel the consumer.
    Keep-alive pings end a silence, so only this ends a call that has nothing else to say. Many events
    that have come at once leave others their turn.

    Raises ProviderError (`too_slow`) when that time is over.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + longest.total_seconds()
    turn = loop.time() + _TURN
    async with aclosing(events):
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    event = await anext(events, None)
            except TimeoutError:
                raise failure("too_slow") from None
            if event is None:
                return
            yield event
            if loop.time() > turn:
                await asyncio.sleep(0)
                turn = loop.time() + _TURN


async def drain(events: AsyncGenerator[object, None]) -> None:
    """Read to the end of the response: only then does its connection serve the next call."""
    with suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(_LINGER):
            async for _ in events:
                pass
