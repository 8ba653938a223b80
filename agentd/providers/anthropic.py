"""Claude, through the official SDK."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Self

from agentd.domain.prompt import Prompt, ProviderEvent
from agentd.errors import ProviderError
from agentd.providers.anthropic_answer import Assembly
from agentd.providers.anthropic_request import PROVIDER, request_body
from agentd.providers.choice import DEFAULT_MODELS
from agentd.providers.events import drain, limited
from agentd.providers.faults import failure, missing_key_cure
from agentd.providers.secrets import Secret
from agentd.providers.settings import ServiceSettings

if TYPE_CHECKING:
    import httpx2

    from agentd.providers.anthropic_api import AnthropicApi


class AnthropicProvider:
    """A provider that makes one call to the Messages API for each stream, without retries.

    The SDK is loaded at the first call, or by `warm`. `transport` replaces the network.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        secret: Secret | None,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._transport = transport
        self._model = settings.model or DEFAULT_MODELS[PROVIDER]
        self._api: AnthropicApi | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """`anthropic`."""
        return PROVIDER

    @property
    def model(self) -> str:
        """The model used when a prompt names none."""
        return self._model

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
        """Load the SDK now, so that the first call does not wait for it. Makes no request."""
        if self._secret is not None:
            await self._open(self._secret)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Events of one answer, `Answered` last. Raises ProviderError, ContextOverflow."""
        if self._secret is None:
            raise ProviderError(
                "There is no usable key for the Anthropic API.",
                cure=missing_key_cure(self._settings.key_variable),
                kind="auth",
            )
        api = await self._open(self._secret)
        model = prompt.model or self._model
        assembly = Assembly(model)
        events = api.events(request_body(prompt, self._settings, model))
        async with contextlib.aclosing(limited(events, self._settings.call_timeout)) as heard:
            async for event in heard:
                shown = assembly.feed(event)
                if shown is not None:
                    yield shown
                if assembly.answered is not None:
                    await drain(heard)
        if assembly.answered is None:
            raise failure("stream_cut")
        yield assembly.answered

    async def _open(self, secret: Secret) -> AnthropicApi:
        async with self._opening:
            if self._api is None:
                self._api = await asyncio.to_thread(
                    _connect, self._settings, secret, self._transport
                )
            return self._api


def _connect(
    settings: ServiceSettings, secret: Secret, transport: httpx2.AsyncBaseTransport | None
) -> AnthropicApi:
    # Loading the SDK costs over a second of CPU and 75 MB, which an idle daemon does not spend.
    from agentd.providers.anthropic_api import AnthropicApi

    return AnthropicApi(settings, secret, transport)
