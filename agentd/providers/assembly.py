"""Builds the configured model: each service in its wrappers, and the chain of fallbacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from msgspec import Struct

from agentd.core.health import Problem
from agentd.core.ports import Blobs, Clock, Provider
from agentd.core.transcript import AvailableChoices
from agentd.providers.answer_room import AnswerRoom
from agentd.providers.anthropic import AnthropicProvider
from agentd.providers.choice import ProviderChoice, choose
from agentd.providers.offline.provider import OfflineProvider
from agentd.providers.openai import OpenAIProvider
from agentd.providers.provider_settings import ProviderSettings, ServiceSettings
from agentd.providers.resilience import CircuitBreaker, Fallback, RetryingProvider

log = structlog.get_logger()

EFFORTS = ("low", "medium", "high")

Meter = Callable[[Provider, ServiceSettings], Provider]


class ProviderModel(Struct, frozen=True):
    """The chosen provider and its fallbacks. `warm` loads the first one's library ahead of its
    first call; None where there is nothing to load.
    """

    choices: tuple[ProviderChoice, ...]  # the first is the provider, the others its fallbacks
    provider: Provider
    breaker: CircuitBreaker | Fallback
    warm: Callable[[], Awaitable[None]] | None
    offer: AvailableChoices
    services: tuple[OpenAIProvider, ...] = ()  # those that may have problems of their own

    def status(self) -> dict[str, Any]:
        """Return the model's part of `agentd status`: what is configured, why, and which fallback
        answers now, if one does.
        """
        first = self.choices[0]
        instead = self.breaker.why() if isinstance(self.breaker, Fallback) else ""
        why = "; ".join(filter(None, (first.why, instead)))
        breaker = self.breaker.status()
        return {"kind": first.kind, "model": first.model, "why": why, "breaker": breaker}

    def problems(self) -> tuple[Problem, ...]:
        """Return missing or bad keys, and the problems of the services, the breakers and the
        fallback.
        """
        keys = tuple(choice.problem for choice in self.choices if choice.problem)
        told = (problem for service in self.services for problem in service.problems())
        return (*keys, *told, *self.breaker.problems())


@asynccontextmanager
async def open_model(
    settings: ProviderSettings,
    environ: Mapping[str, str],
    clock: Clock,
    meter: Meter,
    blobs: Blobs | None = None,
) -> AsyncIterator[ProviderModel]:
    """Open the provider that the configuration and the available keys call for, and its fallbacks.
    `meter` wraps each service that costs something; `blobs` hold the images that messages refer to.
    """
    async with AsyncExitStack() as stack:
        choices, breakers, warms, services = [], [], [], []
        for service in settings.services:
            choice = choose(service, environ)
            log.info("provider", kind=choice.kind, model=choice.model, why=choice.why)
            provider: Provider
            warm: Callable[[], Awaitable[None]] | None
            if choice.kind == "offline":
                provider = offline = OfflineProvider()
                warm = offline.warm
            else:
                remote = _remote(service, choice, blobs)
                await stack.enter_async_context(remote)
                if isinstance(remote, OpenAIProvider):
                    services.append(remote)
                metered = meter(remote, service)
                provider = AnswerRoom(metered, settings.context_window, service.max_tokens)
                warm = None if choice.problem else remote.warm
            # A failure that opens the breaker is a whole call with all its tries, not one of them.
            breakers.append(CircuitBreaker(RetryingProvider(provider, service, clock), clock))
            choices.append(choice)
            warms.append(warm)
        chain = Fallback(breakers) if len(breakers) > 1 else breakers[0]
        offer = _offer(settings, choices[0])
        yield ProviderModel(tuple(choices), chain, chain, warms[0], offer, tuple(services))


def _offer(settings: ProviderSettings, choice: ProviderChoice) -> AvailableChoices:
    """Return the models and efforts that a session may choose. Efforts are offered for a
    chat-completions server only if one is configured: other servers may refuse the parameter.
    """
    if choice.kind == "offline":
        return AvailableChoices((choice.model,))
    models = tuple(dict.fromkeys((choice.model, *settings.models)))
    thinks = choice.kind == "anthropic" or bool(settings.capabilities.reasoning_effort)
    return AvailableChoices(models, EFFORTS if thinks else ())


def _remote(
    service: ServiceSettings, choice: ProviderChoice, blobs: Blobs | None
) -> AnthropicProvider | OpenAIProvider:
    if choice.kind == "openai":
        return OpenAIProvider(service, choice.secret, blobs=blobs)
    return AnthropicProvider(service, choice.secret, blobs=blobs)
