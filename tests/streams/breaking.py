"""A model's service, in this process, whose streams break off, stall, or have a wrong byte."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import ModuleType
from typing import Any

import httpx
import httpx2
from msgspec import Struct

from agentd.core.secrets import Secret
from agentd.providers.anthropic import AnthropicProvider
from agentd.providers.openai import OpenAIProvider
from agentd.providers.provider_settings import ServiceSettings
from agentd.testing import FakeClock, check_api_messages
from tests.e2e.chat_completions import messages_body

# How a stream breaks behind its first bytes: the connection ends, ends within a chunk, is reset,
# says no more; or a byte comes too much, or another, and all the rest behind it.
CUTS = ("end", "half a chunk", "reset", "stall")
FAULTS = (*CUTS, "garbage", "flipped")
SILENCE = 90.0  # seconds until a client gives a silent connection up


class Broken(Struct, frozen=True):
    """What is sent of a stream, and how it ends: "" well, else by one of CUTS."""

    data: bytes
    end: str = ""


def broken(data: bytes, at: int, fault: str) -> Broken:
    """The stream with a fault behind so many bytes."""
    if fault in CUTS:
        return Broken(data[:at], fault)
    chance = random.Random(f"{at} {fault}")
    if fault == "garbage":
        return Broken(data[:at] + bytes([chance.randrange(256)]) + data[at:])
    changed = bytes([data[at] ^ 1 << chance.randrange(8)]) if at < len(data) else b""
    return Broken(data[:at] + changed + data[at + 1 :])


class Service:
    """Serves what is `next`, else `usual`, to the real provider of a wire. `served` is all that
    went out, `wrong` what was asked and no service would take.
    """

    def __init__(self, wire: str, usual: bytes, clock: FakeClock) -> None:
        self.wire = wire
        self.next: list[Broken] = []
        self.served: list[Broken] = []
        self.wrong: list[str] = []
        self.stalled = asyncio.Event()
        self._usual = Broken(usual)
        self._clock = clock

    def provider(self) -> AnthropicProvider | OpenAIProvider:
        """A provider that knows no other service."""
        key = Secret("sk-test", "test")
        if self.wire == "anthropic":
            settings = ServiceSettings(kind="anthropic")
            return AnthropicProvider(settings, key, transport=httpx2.MockTransport(self._said2))
        settings = ServiceSettings(kind="openai", model="gpt-x")
        return OpenAIProvider(settings, key, transport=httpx.MockTransport(self._said))

    async def _said(self, request: httpx.Request) -> httpx.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, stream=self._body(httpx, request.content))

    async def _said2(self, request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=self._body(httpx2, request.content))

    def _body(self, library: ModuleType, asked: bytes) -> Any:
        body = json.loads(asked)
        try:
            said = body if self.wire == "anthropic" else messages_body(body)
            check_api_messages(said["messages"])
        except (AssertionError, KeyError, ValueError) as error:
            self.wrong.append(f"a request that no service takes: {error!r}")
        sent = self.next.pop(0) if self.next else self._usual
        self.served.append(sent)
        return _stream(library, sent, self._silence)

    async def _silence(self) -> None:
        self.stalled.set()
        await self._clock.sleep(SILENCE)


def _stream(library: ModuleType, sent: Broken, silence: Callable[[], Awaitable[None]]) -> Any:
    """The body of a response that ends like that, for one of the two HTTP libraries."""

    class Body(library.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in _pieces(sent.data):
                yield piece
            match sent.end:
                case "half a chunk":
                    raise library.RemoteProtocolError("incomplete chunked read")
                case "reset":
                    raise library.ReadError("reset")
                case "stall":
                    await silence()
                    raise library.ReadTimeout("silence")

    return Body()


def _pieces(data: bytes) -> Iterator[bytes]:
    """The bytes as they come, cut anywhere."""
    middle = len(data) * 2 // 3
    yield from filter(None, (data[:middle], data[middle:]))
