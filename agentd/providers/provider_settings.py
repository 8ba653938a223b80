"""The `[provider]` table of the configuration."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from agentd.core.settings import (
    CredentialName,
    Duration,
    KeyFile,
    KeyVariable,
    PositiveDuration,
    ServiceAddress,
    Settings,
    at_defaults,
    openai_needs_key,
)

Kind = Literal["", "anthropic", "openai", "offline"]

_PLANNED = ("llama",)
_REMOTE = ("anthropic", "openai")


class Capabilities(Settings):
    """What a server behind kind = "openai" understands; docs/providers.md has values for some."""

    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = Field(
        default="max_completion_tokens",
        description='what the longest answer is called: "max_completion_tokens" or "max_tokens"',
    )
    system_role: Literal["system", "developer"] = Field(
        default="system", description='who gives the instructions: "system" or "developer"'
    )
    stream_options: bool = Field(
        default=True, description="ask for token counts; without them they are estimated"
    )
    parallel_tool_calls: bool | None = Field(
        default=None, description="whether to ask for several tool calls at once; unset: not said"
    )
    reasoning_effort: str = Field(
        default="",
        description='how much to think: "none", "low", "high" …; empty: not said',
        pattern=r"^[a-z]*$",
    )
    think_tags: bool = Field(
        default=True, description="take <think>…</think> at the beginning of a text as thinking"
    )


class ServiceSettings(Settings):
    """One model, where it is, and how patiently it is asked."""

    kind: Kind = Field(
        default="",
        description=(
            '"anthropic", "openai" (and what speaks like it), "offline", or "" for anthropic when '
            "its key is there, else offline"
        ),
    )
    model: str = Field(
        default="",
        validate_default=True,
        description="model name; empty means the provider's default (openai has none)",
    )
    base_url: ServiceAddress = Field(
        default="",
        description="other address of the service, for openai with /v1, for anthropic without; "
        "empty means the official one",
    )
    api_key_env: KeyVariable = Field(
        default="",
        description="environment variable that holds the key; empty means ANTHROPIC_API_KEY or "
        "OPENAI_API_KEY",
    )
    api_key_credential: CredentialName = Field(
        default="",
        description="name of the systemd credential that holds the key; empty means "
        "anthropic_api_key or openai_api_key",
    )
    api_key_file: KeyFile = ""
    max_tokens: int = Field(
        default=8192,
        ge=1,
        description="longest answer of one model call, in tokens; less where context_window has no "
        "room for it",
    )
    timeout: PositiveDuration = Field(
        default=timedelta(seconds=90), description="longest silence of the service in an answer"
    )
    connect_timeout: PositiveDuration = Field(
        default=timedelta(seconds=10), description="longest wait for a connection"
    )
    call_timeout: PositiveDuration = Field(
        default=timedelta(minutes=10), description="longest time of one model call in all"
    )
    thinking: Literal["off", "adaptive"] = Field(
        default="off", description='"adaptive" lets the model think before it answers'
    )
    images: bool = Field(
        default=True,
        description="whether the model is shown images; false: it is told that there is one",
    )
    tries: int = Field(
        default=4, ge=1, le=5, description="how often a failing call is made before giving up"
    )
    retry_after_limit: Duration = Field(
        default=timedelta(seconds=60),
        description="longest wait that the service may ask for before a new try",
    )
    capabilities: Capabilities = at_defaults()

    @property
    def table(self) -> str:
        """The table of the configuration that holds these settings."""
        return "[provider]"

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key."""
        default = "OPENAI_API_KEY" if self.kind == "openai" else "ANTHROPIC_API_KEY"
        return self.api_key_env or default

    @property
    def key_credential(self) -> str:
        """The name of the systemd credential that holds the key."""
        default = "openai_api_key" if self.kind == "openai" else "anthropic_api_key"
        return self.api_key_credential or default

    @property
    def needs_key(self) -> bool:
        """Whether calls without a key are pointless; servers other than the official ones may need
        none.
        """
        if self.kind == "openai":
            return openai_needs_key(self.base_url)
        return self.kind == "anthropic"

    @field_validator("kind", mode="before")
    @classmethod
    def _is_available(cls, kind: object) -> object:
        if kind in _PLANNED:
            msg = (
                f'"{kind}" is not available in this version of agentd; use "anthropic", "openai" '
                'or "offline"'
            )
            raise ValueError(msg)
        return kind

    @field_validator("model")
    @classmethod
    def _is_named(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("kind") == "openai" and not model.strip():
            msg = 'must be set for kind = "openai": each server has its own models'
            raise ValueError(msg)
        return model


class FallbackSettings(ServiceSettings):
    """A model that answers when those before it do not."""

    kind: Literal["anthropic", "openai", "offline"] = Field(
        description='"anthropic", "openai" or "offline"'
    )

    @property
    def table(self) -> str:
        """The table of the configuration that holds these settings, as it can be typed."""
        return "[[provider.fallback]]"


class ProviderSettings(ServiceSettings):
    """Which model answers, how patiently it is asked, and which others stand in for it."""

    context_window: int = Field(
        default=200_000,
        ge=1_000,
        description="tokens that the model can read at once; with fallbacks, the smallest of all",
    )
    patience: Duration = Field(
        default=timedelta(hours=6),
        description=(
            "how long messages of chats and editors wait for a service that is away; "
            '"0s": they fail at once'
        ),
    )
    models: tuple[str, ...] = Field(
        default=(), description="other models of this service that a session may choose"
    )
    fallback: tuple[FallbackSettings, ...] = Field(
        default=(),
        description=(
            'models asked in turn when the service fails: [{kind = "openai", model = "…"}], with '
            "any key of this table but context_window, patience and models"
        ),
    )

    @property
    def services(self) -> tuple[ServiceSettings, ...]:
        """The services in the order in which they are asked."""
        return (self, *self.fallback)

    @field_validator("fallback")
    @classmethod
    def _has_a_first(
        cls, fallback: tuple[FallbackSettings, ...], info: ValidationInfo
    ) -> tuple[FallbackSettings, ...]:
        if fallback and info.data.get("kind") not in _REMOTE:
            msg = 'makes sense only behind kind = "anthropic" or "openai"'
            raise ValueError(msg)
        return fallback
