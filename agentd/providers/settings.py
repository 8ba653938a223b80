"""The `[provider]` table of the configuration."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, field_validator

from agentd.domain.settings import Duration, Settings

Kind = Literal["", "anthropic", "openai", "llama", "offline"]

_PLANNED = ("openai", "llama")


class ProviderSettings(Settings):
    """Which model answers, and how patiently it is asked."""

    kind: Kind = Field(
        default="",
        description='"anthropic", "offline", or "" for anthropic when its key is there, else offline',
    )
    model: str = Field(default="", description="model name; empty means the provider's default")
    base_url: str = Field(
        default="",
        description="other address of the service, without /v1; empty means the official one",
        pattern=r"^(https?://.*)?$",
    )
    api_key_env: str = Field(
        default="ANTHROPIC_API_KEY",
        description="environment variable that holds the key",
        min_length=1,
    )
    api_key_credential: str = Field(
        default="anthropic_api_key",
        description="name of the systemd credential that holds the key",
        pattern=r"^[A-Za-z0-9._-]*$",
    )
    api_key_file: str = Field(
        default="", description="file that holds the key; only its owner may read it (mode 0600)"
    )
    max_tokens: int = Field(
        default=8192, ge=1, description="longest answer of one model call, in tokens"
    )
    context_window: int = Field(
        default=200_000, ge=1_000, description="tokens that the model can read at once"
    )
    timeout: Duration = Field(
        default=timedelta(seconds=90), description="longest silence of the service in an answer"
    )
    connect_timeout: Duration = Field(
        default=timedelta(seconds=10), description="longest wait for a connection"
    )
    call_timeout: Duration = Field(
        default=timedelta(minutes=10), description="longest time of one model call in all"
    )
    thinking: Literal["off", "adaptive"] = Field(
        default="off", description='"adaptive" lets the model think before it answers'
    )
    tries: int = Field(
        default=4, ge=1, le=5, description="how often a failing call is made before giving up"
    )
    retry_after_limit: Duration = Field(
        default=timedelta(seconds=60),
        description="longest wait that the service may ask for before a new try",
    )

    @field_validator("kind")
    @classmethod
    def _is_available(cls, kind: str) -> str:
        if kind in _PLANNED:
            msg = (
                f'"{kind}" is not available in this version of agentd; use "anthropic" or "offline"'
            )
            raise ValueError(msg)
        return kind

    @field_validator("timeout", "connect_timeout", "call_timeout")
    @classmethod
    def _is_positive(cls, value: timedelta) -> timedelta:
        if not value:
            msg = "must be longer than zero"
            raise ValueError(msg)
        return value
