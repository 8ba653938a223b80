"""Shared by the remote providers: a client made at its first use, and limits on its stream."""

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
    """An object that holds connections."""

    async def aclose(self) -> None:
        """Close the connections."""


A = TypeVar("A", bound=Closable)


class LazyApi(Generic[A]):
    """Holds one API client. `connect` makes it, in a thread, when it is first needed and again
    after it was closed.
    """

    def __init__(self, connect: Callable[[], A]) -> None:
        self._connect = connect
        self._api: A | None = None
        self._opening = asyncio.Lock()

    async def ready(self) -> A:
        """Return the client; concurrent callers share one. Makes no request."""
        async with self._opening:
            if self._api is None:
                self._api = await asyncio.to_thread(self._connected)
            return self._api

    def _connected(self) -> A:
        """Make a new client without garbage collection. Loading a library makes hundreds of
        thousands of objects that stay: collecting meanwhile would take a tenth of the loading time,
        and each later collection would take as long as a turn if it visited them.
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

_TURN = 0.01  # seconds spent on events at hand before other tasks run
_LINGER = 0.5  # seconds to wait for the response to end after a complete answer


async def limit_duration(
    events: AsyncGenerator[E, None], longest: timedelta
) -> AsyncGenerator[E, None]:
    """Yield the events, for at most the time `longest` in all.

    The limit is set anew around every wait, because one that spanned a yield could cancel the
    consumer. Keep-alive pings reset the limit on silence, so only this limit ends a call that sends
    nothing but pings. Other tasks may run between many events that have arrived at once.

    Raises ProviderError (`too_slow`) when the time is over.
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
    """Read to the end of the response, for at most half a second: only then can its connection
    serve the next call.
    """
    with suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(_LINGER):
            async for _ in events:
                pass
