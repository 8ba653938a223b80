"""A provider for any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING, Self

from agentd.core.errors import ProviderError
from agentd.core.health import Problem
from agentd.core.offloading import offload, offload_rows
from agentd.core.ports import Blobs
from agentd.core.prompt import AnswerBegun, Prompt, ProviderEvent
from agentd.core.secrets import Secret
from agentd.core.turn import Usage
from agentd.providers.counting import TokenCounts
from agentd.providers.faults import missing_key
from agentd.providers.openai_answer import OpenAIAssembly, ThinkTags
from agentd.providers.openai_wire import PROVIDER, Json, request_body, service_of
from agentd.providers.pictures import with_pictures
from agentd.providers.provider_settings import ServiceSettings
from agentd.providers.remote import LazyApi, drain, limit_duration

if TYPE_CHECKING:
    import httpx

    from agentd.providers.openai_api import OpenAIApi

_TAIL = 2.0  # seconds to wait for each of token counts and end mark after the stop reason


class OpenAIProvider:
    """A provider that makes one streamed call for each stream, without retries.

    The HTTP library is loaded at the first call, or by `warm`. `blobs` hold the bytes of images;
    `transport` replaces the network.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        secret: Secret | None,
        *,
        blobs: Blobs | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.name, self.model = PROVIDER, settings.model
        self._settings = settings
        self._blobs = blobs
        self._thinking: set[str] = set()  # models whose answers begin inside of thinking
        self._counts = TokenCounts(f"{PROVIDER} {settings.model}")
        self._api = LazyApi(partial(_connect, settings, secret, transport))
        self._is_locked_out = secret is None and settings.needs_key

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._api.aclose()

    def problems(self) -> tuple[Problem, ...]:
        """Return the problem that the service seems to cut prompts, if it does."""
        return self._counts.problems()

    async def warm(self) -> None:
        """Load the HTTP library now, so that the first call does not wait for it."""
        await self._api.ready()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ProviderEvent, None]:
        """Yield one answer's events, `AnswerCompleted` last. Raises ProviderError,
        ContextOverflow.
        """
        if self._is_locked_out:
            raise missing_key("OpenAI", self._settings.key_variable)
        api = await self._api.ready()
        model = prompt.model or self._settings.model
        seen, pictures = await with_pictures(prompt, self._blobs, can_see=self._settings.images)
        are_tags_read = self._settings.capabilities.think_tags
        tags = ThinkTags(is_inside=model in self._thinking) if are_tags_read else None
        assembly = OpenAIAssembly(model, service=service_of(self._settings), tags=tags)
        build = partial(request_body, seen, self._settings, model, pictures)
        body = await offload_rows(seen.messages, build)
        try:
            async with contextlib.aclosing(self._stream_events(api, body, assembly)) as heard:
                async for shown in heard:
                    yield shown
            usage = await self._used(seen, assembly)
            answer = await offload(assembly.written.size, partial(assembly.answered, usage))
            self._learn(model, tags)
        except ProviderError as error:
            if assembly.is_begun:
                error.usage = await self._used(seen, assembly)
            raise
        yield answer

    def _learn(self, model: str, tags: ThinkTags | None) -> None:
        if tags is not None and tags.is_inside:
            self._thinking.add(model)
        else:
            self._thinking.discard(model)

    async def _stream_events(
        self, api: OpenAIApi, body: Json, assembly: OpenAIAssembly
    ) -> AsyncGenerator[ProviderEvent, None]:
        """Feed the data of each event into `assembly`; yield `AnswerBegun` once, then each delta
        that can be shown. Raises ProviderError.
        """
        is_told = False
        events = limit_duration(api.events(body), self._settings.call_timeout)
        async with contextlib.aclosing(events):
            while not assembly.is_done:
                data = await _next(events, assembly)
                if data is None:
                    break
                news = assembly.feed(data)
                if assembly.is_begun and not is_told:
                    is_told = True
                    yield AnswerBegun()
                for shown in news:
                    yield shown
            for shown in assembly.end():
                yield shown
            await drain(events)

    async def _used(self, prompt: Prompt, assembly: OpenAIAssembly) -> Usage:
        most = prompt.max_tokens or self._settings.max_tokens
        return await self._counts.used(prompt, assembly.usage, assembly.written.tokens, most)


def _connect(
    settings: ServiceSettings, secret: Secret | None, transport: httpx.AsyncBaseTransport | None
) -> OpenAIApi:
    # A daemon that talks to another kind of service does not load a second HTTP library.
    from agentd.providers.openai_api import OpenAIApi

    return OpenAIApi(settings, secret, transport)


async def _next(events: AsyncGenerator[str, None], assembly: OpenAIAssembly) -> str | None:
    """Return the next event, None if there is none. A whole answer does not wait long for more,
    and a connection that is lost behind it loses none of it: then nothing is raised.
    """
    if not assembly.is_whole:
        return await anext(events, None)
    with contextlib.suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(_TAIL):
            return await anext(events, None)
    return None
