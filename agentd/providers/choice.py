"""Which provider is used, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentd.domain.health import Problem
from agentd.errors import ConfigError
from agentd.providers.faults import missing_key_cure
from agentd.providers.secrets import Secret, find_key
from agentd.providers.settings import ProviderSettings

DEFAULT_MODELS: Mapping[str, str] = {"anthropic": "claude-sonnet-5-5", "offline": "offline"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The provider for this daemon. `problem` says why it will not answer, if so."""

    kind: str
    model: str
    why: str
    problem: Problem | None = None
    secret: Secret | None = None


def choose(settings: ProviderSettings, environ: Mapping[str, str]) -> Choice:
    """The provider that the configuration and the keys at hand lead to; never raises.

    Only the automatic kind falls back to offline. A configured one without a usable key stays what
    it is, with the problem: `no_api_key` or `bad_api_key`.
    """
    if settings.kind == "offline":
        return _choice(settings, "offline", "configured")
    try:
        key = find_key(settings, environ)
    except ConfigError as error:
        # Somebody meant this key to be used, so the automatic kind does not turn to offline either.
        problem = Problem("bad_api_key", error.message, error.cure)
        return _choice(settings, "anthropic", "its key is configured, but unusable", problem)
    if key is not None:
        how = "configured" if settings.kind else "automatic"
        return _choice(settings, "anthropic", f"{how}: key from {key.source}", secret=key)
    if settings.kind == "anthropic":
        text = "There is no key for the Anthropic API, so no turn can be answered."
        problem = Problem("no_api_key", text, missing_key_cure(settings.api_key_env))
        return _choice(settings, "anthropic", "configured", problem)
    why = f"automatic: {settings.api_key_env} is not set and no key file is configured"
    return _choice(settings, "offline", why)


def _choice(
    settings: ProviderSettings,
    kind: str,
    why: str,
    problem: Problem | None = None,
    secret: Secret | None = None,
) -> Choice:
    # The configured model is the paid one's; the automatic fallback has only its own.
    model = settings.model if settings.kind or kind == "anthropic" else ""
    return Choice(kind, model or DEFAULT_MODELS[kind], why, problem, secret)
