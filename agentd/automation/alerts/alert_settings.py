"""The `[alerts]` table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from agentd.core.alert import Recipients
from agentd.core.errors import ConfigError
from agentd.core.settings import (
    PositiveDuration,
    Reaches,
    Settings,
    Shown,
    host_alone,
    program_alone,
)
from agentd.core.turn import Origin


class AlertsSettings(Settings):
    """How alerts reach the user."""

    journal: bool = Field(True, description="write alerts to the log")
    socket: bool = Field(True, description="push alerts to clients on the socket")
    main: bool = Field(True, description="put alerts into the main conversation")
    command: Annotated[tuple[str, ...], Shown(program_alone), Reaches("is run at each alert")] = (
        Field((), description="a program and its arguments that gets the text on stdin; no shell")
    )
    webhook_url: Annotated[str, Shown(host_alone), Reaches("is sent each alert")] = Field(
        "", description="an http(s) address that alerts are posted to as JSON"
    )
    webhook_url_env: Annotated[str, Reaches("names where each alert is sent")] = Field(
        "", description="the environment variable that holds the address, if it is a secret"
    )
    timeout: PositiveDuration = Field(
        timedelta(seconds=10), description="how long a command or a webhook may take"
    )
    max_tries: int = Field(10, ge=1, le=100, description="tries for each way before giving up")
    retry_delay: PositiveDuration = Field(
        timedelta(seconds=5), description="wait after the first failed try; doubles up to an hour"
    )

    @field_validator("webhook_url")
    @classmethod
    def _is_web(cls, value: str) -> str:
        if value:
            _check_url(value, "webhook_url")
        return value

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if self.webhook_url and self.webhook_url_env:
            msg = "webhook_url and webhook_url_env contradict each other; set one"
            raise ValueError(msg)
        if self.command and not self.command[0].strip():
            msg = 'command begins with the program\'s name, like ["notify-send", "agentd"]'
            raise ValueError(msg)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the ways that are on, in the order they are tried."""
        on = {
            "journal": self.journal,
            "socket": self.socket,
            "main": self.main,
            "command": bool(self.command),
            "webhook": bool(self.webhook_url or self.webhook_url_env),
        }
        return tuple(name for name, is_on in on.items() if is_on)

    def webhook(self, environ: Mapping[str, str]) -> str:
        """The webhook's address; "" if there is none. Raises ConfigError when the variable that
        should hold it is missing or holds something else.
        """
        if not self.webhook_url_env:
            return self.webhook_url
        try:
            _check_url(environ.get(self.webhook_url_env, ""), self.webhook_url_env)
        except ValueError as error:
            raise ConfigError(
                f"[alerts] webhook_url_env: {error}",
                cure=f"set {self.webhook_url_env} in the service's environment",
            ) from None
        return environ[self.webhook_url_env]


def _check_url(url: str, name: str) -> None:
    """Raises ValueError without repeating the address, which may hold a secret."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = f'{name} holds no web address; write it like "https://example.org/hook"'
        raise ValueError(msg)


# Who is told: what `[heartbeat] target` means.


class Targets:
    """Where alerts go: those of beats as `[heartbeat] target` says, others to every sink."""

    def __init__(self, enabled: Sequence[str], target: str, to: str) -> None:
        """Raises ConfigError for a sink that does not exist or is off."""
        self._enabled = tuple(enabled)
        self._of_beats = resolve(target, to, enabled)

    def __call__(self, origin: Origin) -> Recipients:
        """Whom alerts of that origin go to."""
        return self._of_beats if origin is Origin.HEARTBEAT else Recipients(self._enabled)

    def check(self, target: str, to: str) -> None:
        """Raise ConfigError if beats could not go there."""
        resolve(target, to, self._enabled)

    def adopt(self, target: str, to: str) -> None:
        """Let alerts of beats go there from now on. Raises ConfigError."""
        self._of_beats = resolve(target, to, self._enabled)


def resolve(target: str, to: str, enabled: Sequence[str]) -> Recipients:
    """Whom alerts go to: "last" is every sink that is on, "none" is none.

    Raises ConfigError for a sink that does not exist or is off.
    """
    if target == "last":
        return Recipients(tuple(enabled), to)
    if target == "none":
        return Recipients((), to)
    if target not in enabled:
        known = ", ".join(["last", "none", *enabled])
        raise ConfigError(
            f"[heartbeat] target = {target!r} names no way of alerting that is on",
            cure=f"use one of {known}, or turn {target!r} on in [alerts]",
        )
    return Recipients((target,), to)
