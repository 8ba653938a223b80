"""Opens the model, with its calls metered and kept within the budget."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256

from msgspec.structs import replace

from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.storage import Stores
from agentd.app.config import Config, load, with_workspace
from agentd.core.errors import ConfigError
from agentd.core.paths import DaemonPaths
from agentd.core.ports import Provider
from agentd.core.turn import Usage
from agentd.engine.budget import Budget, Charges
from agentd.engine.completion import Completions
from agentd.engine.workers import CoalescingWorker
from agentd.providers import assembly
from agentd.providers.assembly import ProviderModel
from agentd.providers.choice import ProviderChoice, choose
from agentd.providers.metered import MeteredProvider, most_of
from agentd.providers.provider_settings import ServiceSettings


@asynccontextmanager
async def open_model(
    runtime: RuntimeContext, stores: Stores, provider: Provider | None = None
) -> AsyncIterator[ProviderModel]:
    """Open the configured provider and its fallbacks, as far as there are keys for them.
    `provider`, if given, answers in their place. Raises ConfigError.
    """

    def metered(provider: Provider, service: ServiceSettings) -> Provider:
        return MeteredProvider(
            provider, stores.ledger, runtime.budget, runtime.clock, service.max_tokens
        )

    async with assembly.open_model(
        runtime.config.provider, runtime.environ, runtime.clock, metered, stores.blobs
    ) as model:
        check_prices(runtime.config, model.choices)
        for choice in model.choices:
            if choice.secret is not None:
                runtime.redactor.add(choice.secret.reveal())
        yield model if provider is None else replace(model, provider=provider)


def build_completions(runtime: RuntimeContext, stores: Stores, model: ProviderModel) -> Completions:
    """Build the Completions, which call the model outside conversations. They have no cheap model
    if there is a limit in dollars and the price of the cheap model is unknown.
    """
    cheap = model.choices[0].cheap_model
    known = "" if runtime.budget.unpriced([cheap]) else cheap
    return Completions(
        model.provider,
        Charges(stores.ledger, runtime.clock, runtime.budget.price),
        known,
        stopping=runtime.stopping,
        redactor=runtime.redactor,
    )


def service_name(runtime: RuntimeContext, model: ProviderModel) -> str:
    """Return a digest that identifies the configured services by kind, model and address. It is a
    digest because addresses may contain secrets.
    """
    services = zip(model.choices, runtime.config.provider.services, strict=True)
    asked = [(choice.kind, choice.model, service.base_url) for choice, service in services]
    address = runtime.environ.get("ANTHROPIC_BASE_URL", "")
    return sha256(json.dumps([address, *asked]).encode()).hexdigest()


def warming(model: ProviderModel) -> CoalescingWorker:
    """Build the worker that loads the model's library ahead of its first call, once it is
    nudged.
    """
    return CoalescingWorker("warming", model.warm or _nothing)


def load_checked(places: DaemonPaths, environ: Mapping[str, str]) -> tuple[Config, DaemonPaths]:
    """Return the configuration, and the places with its workspace. Raises ConfigError for what a
    daemon would not start with.
    """
    config = load(places.config_file, environ)
    found = with_workspace(config, places)
    check_model(config, environ)
    return config, found


def check_model(config: Config, environ: Mapping[str, str]) -> None:
    """Check what `open_model` would check, without opening anything. Raises ConfigError."""
    check_prices(config, [choose(service, environ) for service in config.provider.services])


def check_prices(config: Config, choices: Sequence[ProviderChoice]) -> None:
    """Raise ConfigError if there is a limit in dollars and a model in use has no price."""
    paid = tuple(choice.model for choice in choices if choice.kind != "offline")
    silent = (
        config.heartbeat.model,
        config.compaction.summary_model,
        config.facts.extraction_model,
    )
    others = (*silent, *config.provider.models)
    if paid and (missing := Budget(config.budget).unpriced(filter(None, (*paid, *others)))):
        raise ConfigError(
            f"[budget] has a limit in dollars, but no price for {', '.join(missing)}",
            cure=f'add [budget.prices."{missing[0]}"] with input and output, or take the limit out',
        )


def smallest_calls(
    runtime: RuntimeContext, model: ProviderModel, own: str = ""
) -> Sequence[tuple[str, Usage]]:
    """Return the cheapest possible call of each service, as (model, usage). `own` replaces each
    service's model. The result is empty if any service is free.
    """
    if any(choice.kind == "offline" for choice in model.choices):
        return ()
    services = runtime.config.provider.services
    return [
        (own or choice.model, most_of(0, service.max_tokens))
        for choice, service in zip(model.choices, services, strict=True)
    ]


async def _nothing() -> None:
    """Do nothing: there is no library to load."""
