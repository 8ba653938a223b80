"""Any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Self

from agentd.domain.prompt import Prompt, ProviderEvent
from agentd.domain.turn import Usage
from agentd.engine import tokens
from agentd.errors import ProviderError
from agentd.providers.events import drain, limited
from agentd.providers.faults import missing_key_cure
from agentd.providers.openai_answer import DONE, Assembly
from agentd.providers.openai_request import PROVIDER, request_body
from agentd.providers.secrets import Secret
from agentd.providers.settings import ServiceSettings

if TYPE_CHECKING:
    import httpx

    from agentd.providers.openai_api import OpenAIApi

_TAIL = 2.0  # seconds that a stopped answer waits for its token counts and the end mark


class OpenAIProvider:
    """A provider that makes one streamed call for each stream, without retries.

    The HTTP library is loaded at the first call, or by `warm`. `transport` replaces the network.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        secret: Secret | None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._transport = transport
        self._api: OpenAIApi | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """`openai`."""
        return PROVIDER

    @property
    def model(self) -> str:
        """The model used when a prompt names none."""
        return self._settings.model

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        api, self._api = self._api, None
        if api is not None:
            await api.aclose()

    async def warm(self) -> None:
        """Load the HTTP library now, so that the first call does not wait for it."""
        await self._open()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Events of one answer, `Answered` last. Raises ProviderError, ContextOverflow."""
        if self._secret is None and self._settings.needs_key:
            raise ProviderError(
                "There is no usable key for the OpenAI API.",
                cure=missing_key_cure(self._settings.key_variable),
                kind="auth",
            )
        api = await self._open()
        model = prompt.model or self._settings.model
        body = request_body(prompt, self._settings, model)
        assembly = Assembly(model, think_tags=self._settings.capabilities.think_tags)
        events = limited(api.events(body), self._settings.call_timeout)
        async with contextlib.aclosing(events):
            async for data in events:
                for shown in assembly.feed(data):
                    yield shown
                if assembly.is_stopped or assembly.is_done:
                    break
            for data in await _tail(events) if not assembly.is_done else ():
                assembly.feed(data)
            await drain(events)
        yield assembly.answered(assembly.usage or _estimate(body, assembly))

    async def _open(self) -> OpenAIApi:
        async with self._opening:
            if self._api is None:
                self._api = await asyncio.to_thread(
                    _connect, self._settings, self._secret, self._transport
                )
            return self._api


def _connect(
    settings: ServiceSettings, secret: Secret | None, transport: httpx.AsyncBaseTransport | None
) -> OpenAIApi:
    # A daemon that talks to another kind of service does not load a second HTTP library.
    from agentd.providers.openai_api import OpenAIApi

    return OpenAIApi(settings, secret, transport)


async def _tail(events: AsyncGenerator[str, None]) -> list[str]:
    """What comes behind the stop reason; a connection that is lost there loses no word."""
    found: list[str] = []
    with contextlib.suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(_TAIL):
            async for data in events:
                found.append(data)
                if data.strip() == DONE:
                    break
    return found


def _estimate(body: dict[str, Any], assembly: Assembly) -> Usage:
    """For a server that does not count: budgets and the context's size need some figure."""
    sent = tokens.of_text(json.dumps(body, ensure_ascii=False))
    return Usage(input_tokens=sent, output_tokens=tokens.of_text("".join(assembly.written)))
