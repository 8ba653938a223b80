"""A service's API, made at its first use: an idle daemon saves what its library costs."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


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
