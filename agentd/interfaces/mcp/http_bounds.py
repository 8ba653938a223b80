"""Bounds on what an MCP server sends over HTTP, the same as on a program's output."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import httpx2

from agentd.interfaces.mcp.link import ServerFault

_BODY = 8 * 1024 * 1024  # bytes of one answer that is no event stream
_TOO_LARGE = f"it sent a message of more than {_BODY // 1024**2} MiB"
_BURST = 32 * 1024 * 1024  # bytes that may come between two messages of agentd
_EVENTS = 5000  # likewise
_BLANK_LINE = re.compile(rb"\n\r?\n|\r\r")


class BoundsExceeded(httpx2.TransportError):
    """The server sent more than the bounds allow."""


class HttpBounds:
    """Event hooks of an httpx client that break off answers beyond the bounds. `fault` is the
    reason then, `flooded` is set, and no further request or read succeeds.
    """

    def __init__(self) -> None:
        self.flooded = asyncio.Event()
        self.fault: ServerFault | None = None
        self._events = 0
        self._bytes = 0

    async def asked(self, request: httpx2.Request) -> None:
        """Reset the counts with each POST, a message of agentd. Raises BoundsExceeded."""
        self._require_calm()
        if request.method == "POST":
            self._events = self._bytes = 0

    async def answered(self, response: httpx2.Response) -> None:
        """Wrap the body so that it is counted. Raises BoundsExceeded if the answer declares a size
        beyond the bound or is compressed, in which case its size is unknown.
        """
        if int(response.headers.get("content-length", 0)) > _BODY:
            self.break_off(_TOO_LARGE)
        if response.headers.get("content-encoding", "identity") != "identity":
            self.end(ServerFault("protocol", "its answer is packed, which nobody has asked for"))
        self._require_calm()
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream, self, is_stream=is_stream)

    def count(self, size: int, events: int) -> None:
        """Add bytes and ends of events. Raises BoundsExceeded beyond the bounds; the SDK bounds a
        single event.
        """
        self._bytes += size
        self._events += events
        if self._bytes > _BURST or self._events > _EVENTS:
            self.break_off("it sent more than anybody had asked for")
        self._require_calm()

    def break_off(self, why: str) -> None:
        """End the session as flooded; `why` is the message."""
        self.end(ServerFault("flooded", why))

    def end(self, fault: ServerFault) -> None:
        """End the session with `fault`, unless it has ended with another before."""
        self.fault = self.fault or fault
        self.flooded.set()

    def _require_calm(self) -> None:
        if self.fault is not None:
            raise BoundsExceeded(self.fault.message)


class _Counted(httpx2.AsyncByteStream):
    """A response body that reports its bytes and events to the bounds."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, bounds: HttpBounds, *, is_stream: bool
    ) -> None:
        self._inner = inner
        self._bounds = bounds
        self._is_stream = is_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total, before = 0, b""
        async for data in self._inner:
            total += len(data)
            if not self._is_stream and total > _BODY:
                self._bounds.break_off(_TOO_LARGE)
            known = before + data  # the end of an event may be split over two pieces
            ends = [found.end() for found in _BLANK_LINE.finditer(known)]
            before = known[max(len(known) - 2, ends[-1] if ends else 0) :]
            self._bounds.count(len(data), len(ends) if self._is_stream else 0)
            yield data

    async def aclose(self) -> None:
        """Close the inner stream."""
        await self._inner.aclose()
