"""Claude, through the official SDK."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING, Self

from agentd.core.errors import ProviderError
from agentd.core.offloading import offload, offload_rows
from agentd.core.ports import Blobs
from agentd.core.prompt import AnswerBegun, Prompt, ProviderEvent
from agentd.core.secrets import Secret
from agentd.core.turn import Usage
from agentd.providers.anthropic_wire import PROVIDER, AnthropicAssembly, Json, request_body
from agentd.providers.choice import DEFAULT_MODELS
from agentd.providers.counting import TokenCounts
from agentd.providers.faults import failure, missing_key
from agentd.providers.pictures import with_pictures
from agentd.providers.provider_settings import ServiceSettings
from agentd.providers.remote import LazyApi, drain, limit_duration

if TYPE_CHECKING:
    import httpx2

    from agentd.providers.anthropic_api import AnthropicApi


class AnthropicProvider:
    """A provider that makes one call to the Messages API for each stream, without retries.

    The SDK is loaded at the first call, or by `warm`. `blobs` hold the bytes of images;
    `transport` replaces the network.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        secret: Secret | None,
        *,
        blobs: Blobs | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._blobs = blobs
        self._counts = TokenCounts(PROVIDER)
        self.name = PROVIDER
        self.model = settings.model or DEFAULT_MODELS[PROVIDER]
        self._api = LazyApi(partial(_connect, settings, secret, transport)) if secret else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        if self._api is not None:
            await self._api.aclose()

    async def warm(self) -> None:
        """Load the SDK now, so that the first call does not wait for it. Makes no request."""
        if self._api is not None:
            await self._api.ready()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield one answer's events, `AnswerCompleted` last. Raises ProviderError,
        ContextOverflow.
        """
        if self._api is None:
            raise missing_key("Anthropic", self._settings.key_variable)
        api = await self._api.ready()
        model = prompt.model or self.model
        assembly = AnthropicAssembly(model)
        seen, pictures = await with_pictures(prompt, self._blobs, can_see=self._settings.images)
        build = partial(request_body, seen, self._settings, model, pictures)
        body = await offload_rows(seen.messages, build)
        try:
            async with contextlib.aclosing(self._stream_events(api, body, assembly)) as heard:
                async for shown in heard:
                    yield shown
            usage = await self._used(seen, assembly)
            answer = await offload(assembly.written.size, partial(assembly.answered, usage))
        except ProviderError as error:
            if assembly.is_begun:
                error.usage = await self._used(seen, assembly)
            raise
        yield answer

    async def _stream_events(
        self, api: AnthropicApi, body: Json, assembly: AnthropicAssembly
    ) -> AsyncGenerator[ProviderEvent, None]:
        """Feed the raw events into `assembly`; yield `AnswerBegun` once, then each delta that can
        be shown. Raises ProviderError, `stream_cut` if the stream ends before the answer does.
        """
        is_told = False
        events = limit_duration(api.events(body), self._settings.call_timeout)
        async with contextlib.aclosing(events):
            async for event in events:
                shown = assembly.feed(event)
                if assembly.is_begun and not is_told:
                    is_told = True
                    yield AnswerBegun()
                if shown is not None:
                    yield shown
                if assembly.is_complete:
                    await drain(events)
        if not assembly.is_complete:
            raise failure("stream_cut")

    async def _used(self, prompt: Prompt, assembly: AnthropicAssembly) -> Usage:
        most = prompt.max_tokens or self._settings.max_tokens
        return await self._counts.used(prompt, assembly.usage, assembly.written.tokens, most)


def _connect(
    settings: ServiceSettings, secret: Secret, transport: httpx2.AsyncBaseTransport | None
) -> AnthropicApi:
    # Loading the SDK costs over a second of CPU and 75 MB, which an idle daemon does not spend.
    from agentd.providers.anthropic_api import AnthropicApi

    return AnthropicApi(settings, secret, transport)
