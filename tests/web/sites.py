"""Web servers on this machine, and the guard and the fetcher that may reach them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from agentd.core.tool import Approval, FileIntent, ToolCall
from agentd.core.turn import MAIN, Origin, SessionKind, TurnRequest
from agentd.interfaces.web.fetcher import Fetcher, FetchLimits
from agentd.interfaces.web.guard import Address, AddressGuard

LOOPBACK = ip_network("127.0.0.1/32")  # stands for the public internet
INSIDE = "127.0.0.2"  # stands for a private network
SECRET = "CANARY-of-the-inside"

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """A running server."""

    port: int
    heads: list[str] = field(default_factory=list)  # of all requests

    def url(self, path: str = "/", host: str = "site.example", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


def page(
    body: bytes | str, media_type: str = "text/html", status: str = "200 OK", **headers: str
) -> bytes:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": media_type, "Content-Length": str(len(data)), **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{k.replace('_', '-')}: {v}" for k, v in fields.items() if v)]
    return "\r\n".join([*lines, "", ""]).encode() + data


def leads_to(place: str, status: str = "302 Found") -> bytes:
    return page("", status=status, Location=place)


@asynccontextmanager
async def site(
    pages: Mapping[str, bytes | Write],
    host: str = "127.0.0.1",
    port: int = 0,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[Site]:
    """A server of these pages while the block runs; what is not among them is a page with a
    secret.
    """
    found = Site(0)
    answering: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(task := asyncio.current_task())
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                found.heads.append(head)
                given = pages.get(head.split()[1].partition("?")[0], page(SECRET, "text/plain"))
                if isinstance(given, bytes):
                    writer.write(given)
                    await writer.drain()
                else:
                    await given(writer)
                writer.close()
                await writer.wait_closed()
        except asyncio.CancelledError:
            pass  # the server ends
        finally:
            writer.transport.abort()
            answering.discard(task)

    async with await asyncio.start_server(answer, host, port, ssl=context) as server:
        found.port = server.sockets[0].getsockname()[1]
        try:
            yield found
        finally:
            for task in [*answering]:
                task.cancel()
            while answering:
                await asyncio.sleep(0)


@dataclass
class Names:
    """A resolver: what each name is at, one answer after the other, the last one again and
    again.
    """

    places: Mapping[str, Sequence[str | Sequence[str]]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        if host not in self.places:
            try:
                return [ip_address(host)]
            except ValueError:
                raise OSError("no such name") from None
        answers = self.places[host]
        found = answers[min(self.asked.count(host), len(answers)) - 1]
        return [ip_address(one) for one in ([found] if isinstance(found, str) else found)]


def guard(names: Names | None = None, **more: Any) -> AddressGuard:
    """One that takes 127.0.0.1 for the public internet."""
    resolve = names or Names({"site.example": ["127.0.0.1"]})
    return AddressGuard(**{"resolve": resolve, "private": (LOOPBACK,), **more})


def fetcher(
    by: AddressGuard | None = None, *, context: ssl.SSLContext | None = None, **limits: Any
) -> Fetcher:
    given = {"seconds": 20.0, "most": 100_000, "redirects": 3, **limits}
    return Fetcher(by or guard(), FetchLimits(**given), context)


def request(origin: Origin = Origin.USER, **more: Any) -> TurnRequest:
    return TurnRequest(
        **{"session": MAIN, "text": "x", "message_id": "m", "origin": origin, **more}
    )


def call(name: str, **given: Any) -> ToolCall:
    return ToolCall("c1", name, given, MAIN, SessionKind.OWNER, Origin.USER)


class OpenGate:
    """A gate that nobody stands at."""

    async def approve(self, approval: Approval) -> bool:
        raise AssertionError(approval)

    def tell(self, text: str) -> None:
        return

    async def intend(self, intent: FileIntent | None = None) -> None:
        return
