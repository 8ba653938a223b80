"""Choose the provider that is used, and say why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from agentd.core.errors import ConfigError
from agentd.core.health import Problem
from agentd.core.secrets import Secret, find_key
from agentd.providers.faults import missing_key_cure
from agentd.providers.provider_settings import ServiceSettings

DEFAULT_MODELS: Mapping[str, str] = {"anthropic": "claude-sonnet-5-5", "offline": "offline"}
# Each provider's cheap model, for calls outside of conversations; none is known for the others.
CHEAP_MODELS: Mapping[str, str] = {"anthropic": "claude-haiku-5-5"}
SERVICES: Mapping[str, str] = {"anthropic": "Anthropic API", "openai": "OpenAI API"}


ChosenKind = Literal["anthropic", "openai", "offline"]


class ProviderChoice(Struct, frozen=True):
    """The provider for this daemon. `problem` says why it will not answer, if so. `cheap_model` is
    a cheaper model of the same service, "" where none is known.
    """

    kind: ChosenKind
    model: str
    why: str
    problem: Problem | None = None
    secret: Secret | None = None
    cheap_model: str = ""


def choose(settings: ServiceSettings, environ: Mapping[str, str]) -> ProviderChoice:
    """Return the provider that the configuration and the available keys lead to; never raises.

    Only the automatic kind falls back to offline. A configured kind without a usable key is kept,
    with the problem `no_api_key` or `bad_api_key`.
    """
    if settings.kind == "offline":
        return _choice(settings, "offline", "configured")
    kind = settings.kind or "anthropic"
    try:
        key = find_key(settings, environ)
    except ConfigError as error:
        # Somebody meant this key to be used, so the automatic kind does not turn to offline either.
        problem = Problem("bad_api_key", error.message, error.cure)
        return _choice(settings, kind, "its key is configured, but unusable", problem)
    if key is not None:
        how = "configured" if settings.kind else "automatic"
        return _choice(settings, kind, f"{how}: key from {key.source}", secret=key)
    if settings.needs_key:
        text = f"There is no key for the {SERVICES[kind]}, so it answers no turn."
        problem = Problem("no_api_key", text, missing_key_cure(settings.key_variable))
        return _choice(settings, kind, "configured", problem)
    if settings.kind:
        return _choice(settings, kind, f"configured: {settings.base_url}, without a key")
    why = f"automatic: {settings.key_variable} is not set and no key file is configured"
    return _choice(settings, "offline", why)


def _choice(
    settings: ServiceSettings,
    kind: ChosenKind,
    why: str,
    problem: Problem | None = None,
    secret: Secret | None = None,
) -> ProviderChoice:
    # The configured model belongs to the paid service; the automatic fallback has only its own.
    model = settings.model if settings.kind or kind == "anthropic" else ""
    # A server at another address may not know the service's own model names.
    cheap = "" if settings.base_url else CHEAP_MODELS.get(kind, "")
    return ProviderChoice(kind, model or DEFAULT_MODELS.get(kind, ""), why, problem, secret, cheap)
