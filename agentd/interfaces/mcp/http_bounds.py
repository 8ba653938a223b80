"""Bounds on what a server over HTTP sends: those of a program's output, for bodies and streams of events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import httpx2

from agentd.interfaces.mcp.link import ServerFault

_BODY = 8 * 1024 * 1024  # bytes of one answer that is no stream
_TOO_LARGE = f"it sent a message of more than {_BODY // 1024**2} MiB"
_BURST = 32 * 1024 * 1024  # bytes that may come between two messages of ours
_EVENTS = 5000  # likewise
_BLANK_LINE = re.compile(rb"\n\r?\n|\r\r")


class Flooded(httpx2.TransportError):
    """More came than anybody had asked for."""


class HttpBounds:
    """Hooks of a client that break off answers beyond the bounds. `flooded` is set then, `fault` tells why,
    and nothing more is asked or read.
    """

    def __init__(self) -> None:
        self.flooded = asyncio.Event()
        self.fault: ServerFault | None = None
        self._events = 0
        self._bytes = 0

    async def asked(self, request: httpx2.Request) -> None:
        """Begin to count anew with each message of ours. Raises Flooded."""
        self._require_calm()
        if request.method == "POST":
            self._events = self._bytes = 0

    async def answered(self, response: httpx2.Response) -> None:
        """Count what is read of the answer. Raises Flooded for one that says that it is too large, and for one
        that is packed, which could become any size.
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
        """So many bytes and ends of events more. How long one event may be the SDK knows. Raises Flooded."""
        self._bytes += size
        self._events += events
        if self._bytes > _BURST or self._events > _EVENTS:
            self.break_off("it sent more than anybody had asked for")
        self._require_calm()

    def break_off(self, why: str) -> None:
        """Read nothing more."""
        self.end(ServerFault("flooded", why))

    def end(self, fault: ServerFault) -> None:
        """Ask and read nothing more, for this reason unless there was one before."""
        self.fault = self.fault or fault
        self.flooded.set()

    def _require_calm(self) -> None:
        if self.fault is not None:
            raise Flooded(self.fault.message)


class _Counted(httpx2.AsyncByteStream):
    """A body that is counted."""

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
            known = before + data  # an end may stand across two pieces
            ends = [found.end() for found in _BLANK_LINE.finditer(known)]
            before = known[max(len(known) - 2, ends[-1] if ends else 0) :]
            self._bounds.count(len(data), len(ends) if self._is_stream else 0)
            yield data

    async def aclose(self) -> None:
        """Close the inner one."""
        await self._inner.aclose()
