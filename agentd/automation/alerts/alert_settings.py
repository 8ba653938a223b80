"""The `[alerts]` table with the tables of single sinks, and the meaning of `[heartbeat] target`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from msgspec.structs import replace
from pydantic import AfterValidator, Field, field_validator, model_validator

from agentd.automation.alerts.timing import SinkTiming
from agentd.automation.heartbeat.hours import Hours, Window
from agentd.core.alert import AlertSeverity, Recipients
from agentd.core.errors import ConfigError
from agentd.core.secrets import Reference
from agentd.core.settings import (
    ActsOutside,
    Duration,
    NamedTables,
    PositiveDuration,
    SecretPlace,
    Settings,
    ShownAs,
    TimeOfDay,
    host_alone,
    program_alone,
)
from agentd.core.times import format_duration, format_time, parse_time
from agentd.core.turn import Origin

_OWN = ("journal", "socket", "main", "command", "webhook")  # in the order they are tried
_TAKEN = frozenset({*_OWN, "last", "none"})  # words that `[heartbeat] target` knows already
_TIMED = ("command", "webhook")  # sinks whose severity and times are set in [alerts.sinks]
_DAY_MINUTES = 24 * 60
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,23}", re.ASCII)
_WORD = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9]*://", re.ASCII)
_HOLE = re.compile(r"\{([^{}]*)\}")
_PASSWORD = re.compile(r"://[^/?#@:]*:([^/?#@]+)@")


class SinkSettings(Settings):
    """Which alerts a sink gets, and when."""

    severity: AlertSeverity = Field(
        AlertSeverity.INFO, description='only alerts as severe: "info" (all), "warning" or "urgent"'
    )
    quiet_hours_start: TimeOfDay | Literal[""] = Field(
        "", description='what is not urgent waits from this time of day on; "": no quiet hours'
    )
    quiet_hours_end: TimeOfDay | Literal[""] = Field(
        "", description="and comes as one message at this time of day"
    )
    digest: Duration = Field(
        timedelta(0),
        description=(
            'what is not urgent is gathered for so long and comes as one message; "0s": at once'
        ),
    )

    @field_validator("quiet_hours_start", "quiet_hours_end", mode="before")
    @classmethod
    def _time_or_nothing(cls, value: Any) -> Any:
        return value if value == "" else parse_time(value)

    @field_validator("digest")
    @classmethod
    def _within_a_day(cls, value: timedelta) -> timedelta:
        if value > timedelta(days=1):
            msg = "digest is at most a day"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _hours_are_a_window(self) -> Self:
        start, end = self.quiet_hours_start, self.quiet_hours_end
        if (start == "") != (end == ""):
            msg = "quiet_hours_start and quiet_hours_end go together: set both, or neither"
            raise ValueError(msg)
        if start != "" and start in (end, _DAY_MINUTES):
            msg = "the quiet hours begin and end at different times, and begin before 24:00"
            raise ValueError(msg)
        return self

    def timing(self, zone: ZoneInfo) -> SinkTiming:
        """Return the settings in the dispatcher's form, with times of day in the zone."""
        start, end = self.quiet_hours_start, self.quiet_hours_end
        quiet = None
        told = ""
        if start != "" and end != "":
            quiet = Hours(Window(0, _DAY_MINUTES), Window(start, end), zone)
            told = f"{format_time(start)}-{format_time(end)}"
        words = {
            "severity": str(self.severity),
            "quiet_hours": told,
            "digest": format_duration(self.digest) if self.digest else "",
        }
        return SinkTiming(self.severity, quiet, self.digest, words)


class AppriseTarget(SinkSettings):
    """An address at one of the services that Apprise knows."""

    url: str = Field("", description="Apprise's address of one recipient, with {NAME} for secrets")
    secrets: dict[str, SecretPlace] = Field(
        {},
        description="where the secrets of the address stand: the name of a variable,"
        ' "credential:NAME" or "file:PATH"',
    )
    enabled: bool = Field(True, description="off: it is as if the table were not there")
    timeout: PositiveDuration = Field(
        timedelta(seconds=30), description="how long a message may take"
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not (_SCHEME.match(self.url) or _HOLE.fullmatch(self.url)):
            msg = 'url is no address of Apprise; write it like "ntfys://ntfy.sh/{topic}"'
            raise ValueError(msg)
        holes = set(_HOLE.findall(self.url))
        for word in sorted(holes ^ self.secrets.keys()):
            what = "secrets do not name it" if word in holes else "url has no place for it"
            msg = f"{{{word}}}: {what}"
            raise ValueError(msg)
        for word, place in self.secrets.items():
            if not _WORD.fullmatch(word) or not place.strip():
                msg = f'{word!r}: write secrets like {{ topic = "NTFY_TOPIC" }}'
                raise ValueError(msg)
        password = _PASSWORD.search(self.url)
        if password and not _HOLE.search(password[1]):
            msg = "url holds a password; write {password} there, and name its place in secrets"
            raise ValueError(msg)
        return self


def _checked_targets(targets: dict[str, AppriseTarget]) -> dict[str, AppriseTarget]:
    for name in targets:
        if not _NAME.fullmatch(name):
            msg = f"{name!r} is no name of a sink: use at most 24 small letters, digits and `-`"
            raise ValueError(msg)
        if name in _TAKEN:
            msg = f"{name!r} means something else already; use another name"
            raise ValueError(msg)
    return targets


def _checked_sinks(sinks: dict[str, SinkSettings]) -> dict[str, SinkSettings]:
    for name in sinks:
        if name not in _TIMED:
            told = " and ".join(_TIMED)
            msg = f"{name!r}: only {told} have such a table; those of apprise say it in their own"
            raise ValueError(msg)
    return sinks


def _in_part(targets: Mapping[str, Any]) -> dict[str, Any]:
    """Return the targets for `config show`, without addresses, any part of which may be secret."""
    return {
        name: {**target, "url": f"{target['url'].partition('://')[0]}://[not shown]"}
        for name, target in targets.items()
    }


class AlertsSettings(Settings):
    """How alerts reach the user."""

    journal: bool = Field(True, description="write alerts to the log")
    socket: bool = Field(True, description="push alerts to clients on the socket")
    main: bool = Field(True, description="put alerts into the main conversation")
    command: Annotated[
        tuple[str, ...], ShownAs(program_alone), ActsOutside("is run at each alert")
    ] = Field((), description="a program and its arguments that gets the text on stdin; no shell")
    webhook_url: Annotated[str, ShownAs(host_alone), ActsOutside("is sent each alert")] = Field(
        "", description="an http(s) address that alerts are posted to as JSON"
    )
    webhook_url_env: Annotated[str, ActsOutside("names where each alert is sent")] = Field(
        "", description="the environment variable that holds the address, if it is a secret"
    )
    timeout: PositiveDuration = Field(
        timedelta(seconds=10), description="how long a command or a webhook may take"
    )
    max_tries: int = Field(
        34, ge=1, le=100, description="tries for each way before giving up; 34 take a day"
    )
    retry_delay: PositiveDuration = Field(
        timedelta(seconds=5), description="wait after the first failed try; doubles up to an hour"
    )
    sinks: Annotated[
        dict[str, SinkSettings], AfterValidator(_checked_sinks), NamedTables(SinkSettings)
    ] = Field(
        {}, description="which alerts command and webhook get, and when, by the name of the way"
    )
    apprise: Annotated[
        dict[str, AppriseTarget],
        AfterValidator(_checked_targets),
        NamedTables(AppriseTarget),
        ShownAs(_in_part),
        ActsOutside("is sent each alert"),
    ] = Field(
        {},
        description="services that Apprise knows (docs/alerts.md), each with a table of its own",
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
        """The names of the sinks that are on, in the order in which they are tried."""
        on = {
            "journal": self.journal,
            "socket": self.socket,
            "main": self.main,
            "command": bool(self.command),
            "webhook": bool(self.webhook_url or self.webhook_url_env),
        }
        return (*(name for name in _OWN if on[name]), *self.targets)

    @property
    def targets(self) -> dict[str, AppriseTarget]:
        """The Apprise addresses that are on, by the names of their sinks."""
        return {name: target for name, target in self.apprise.items() if target.enabled}

    def timings(self, zone: ZoneInfo) -> dict[str, SinkTiming]:
        """Return the timing of each sink that is on and has timing settings."""
        known = {**self.sinks, **self.targets}
        return {name: known[name].timing(zone) for name in self.names if name in known}

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables that may contain secrets of sinks."""
        places = (place for one in self.apprise.values() for place in one.secrets.values())
        variables = (Reference(place, "").key_variable for place in places)
        return tuple(filter(None, (self.webhook_url_env, *variables)))

    def webhook(self, environ: Mapping[str, str]) -> str:
        """Return the webhook's address; "" if there is none. Raises ConfigError if the variable
        that should contain it is missing or contains no web address.
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


class Targets:
    """Chooses the recipients of alerts: those of beats according to `[heartbeat] target`, others go
    to every sink.
    """

    def __init__(
        self,
        enabled: Sequence[str],
        target: str,
        to: str,
        least: Mapping[str, AlertSeverity] = MappingProxyType({}),
    ) -> None:
        """`least` maps names of sinks to the least severity that they accept. Raises ConfigError if
        `target` is a sink that does not exist or is off.
        """
        self._enabled = tuple(enabled)
        self._least = dict(least)
        self.adopt(target, to)

    def __call__(self, origin: Origin) -> Recipients:
        """Return the recipients of alerts of this origin."""
        if origin is Origin.HEARTBEAT:
            return self._of_beats
        return Recipients(self._enabled, least=self._least)

    def check(self, target: str, to: str) -> None:
        """Raise ConfigError if `target` is no valid target for alerts of beats."""
        resolve(target, to, self._enabled)

    def adopt(self, target: str, to: str) -> None:
        """Send alerts of beats to this target from now on. Raises ConfigError."""
        self._of_beats = replace(resolve(target, to, self._enabled), least=self._least)


def resolve(target: str, to: str, enabled: Sequence[str]) -> Recipients:
    """Return the recipients that a target stands for: "last" is every sink that is on, "none" is
    none, any other word is the name of one sink.

    Raises ConfigError for a sink that does not exist or is off.
    """
    if target == "last":
        return Recipients(tuple(enabled), to)
    if target == "none":
        return Recipients((), to)
    if target not in enabled:
        known = ", ".join(["last", "none", *enabled])
        raise ConfigError(
            f"{target!r} names no way of alerting that is on",
            cure=f"use one of {known}, or turn {target!r} on in [alerts]",
        )
    return Recipients((target,), to)


def _check_url(url: str, name: str) -> None:
    """Check for an http(s) address. Raises ValueError, without the address, which may contain a
    secret.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = f'{name} holds no web address; write it like "https://example.org/hook"'
        raise ValueError(msg)
