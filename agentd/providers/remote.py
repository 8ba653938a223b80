"""What the providers of services share: an API made at its first use, and a stream heard to its end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from agentd.core.errors import ProviderError
from agentd.providers.faults import failure


class Closable(Protocol):
    """What holds connections."""

    async def aclose(self) -> None:
        """Close them."""


A = TypeVar("A", bound=Closable)


class LateApi(Generic[A]):
    """Holds one API, made by `connect` in a thread when it is first asked for, and again after it
    was closed.
    """

    def __init__(self, connect: Callable[[], A]) -> None:
        self._connect = connect
        self._api: A | None = None
        self._opening = asyncio.Lock()

    async def ready(self) -> A:
        """The API, once for all who ask at the same time. Makes no request."""
        async with self._opening:
            if self._api is None:
                self._api = await asyncio.to_thread(self._connected)
            return self._api

    def _connected(self) -> A:
        """A new API. What a library makes while it is loaded stays, hundreds of thousands of objects:
        to look for garbage among them meanwhile would take a tenth of the time, and to look at them
        ever again as long as a turn.
        """
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return self._connect()
        finally:
            gc.freeze()
            if was_enabled:
                gc.enable()

    async def aclose(self) -> None:
        """Close the connections."""
        api, self._api = self._api, None
        if api is not None:
            await api.aclose()


E = TypeVar("E")

_TURN = 0.01  # seconds of events that have come, before others have theirs
_LINGER = 0.5  # seconds that a complete answer waits for the end of its response


async def limit_duration(
    events: AsyncGenerator[E, None], longest: timedelta
) -> AsyncGenerator[E, None]:
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
