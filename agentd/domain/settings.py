"""The base of every part's settings, and the kinds of value that settings share.

A part declares a frozen class next to its code; config.py only gathers them. Each field carries a
`description`: it is the comment in config.example.toml.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_DURATION = re.compile(r"(?:(\d+)d\s*+)?(?:(\d+)h\s*+)?(?:(\d+)m\s*+)?(?:(\d+)s)?", re.ASCII)
_NAMED_PATH = re.compile(r"([a-z0-9][a-z0-9_-]{0,31})=(.+)", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)


class Settings(BaseModel):
    """A frozen table of the configuration; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, validate_default=True)


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a plain value `config show` tells, where the rest may hold secrets."""

    by: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Reaches:
    """A setting that acts beyond agentd, or lets others see more, and how: a configuration of somebody
    else is shown with it before it is taken. `when` says of which values that is true.
    """

    how: str
    when: Callable[[Any], bool] = bool


def program_alone(command: Sequence[str]) -> list[str]:
    """The program of a command, and how many arguments it has."""
    program, *arguments = command or [""]
    count = f"[{len(arguments)} arguments, not shown]"
    return [program, count] if arguments else list(command)


def host_alone(address: str) -> str:
    """An address up to its path, in which services put their tokens."""
    parts = urlsplit(address)
    rest = "/[not shown]" if parts.path.strip("/") or parts.query or parts.fragment else ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{rest}" if address else ""


def address_alone(address: str) -> str:
    """An address without user, query and fragment, in which services are given keys."""
    parts = urlsplit(address)
    rest = "?[not shown]" if parts.query or parts.fragment else ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}{rest}" if address else ""


def parse_duration(value: Any) -> timedelta:
    """A duration from "1h30m", "45s", "2d". Raises ValueError with an example."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not any(match.groups()):
        msg = f'{value!r} is no duration; write it like "30m", "1h30m", "45s" or "2d"'
        raise ValueError(msg)
    days, hours, minutes, seconds = (int(g or 0) for g in match.groups())
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        msg = f"{value!r} is too long a duration"
        raise ValueError(msg) from None


def format_duration(value: timedelta) -> str:
    """The shortest spelling that `parse_duration` reads back."""
    left = int(value.total_seconds())
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_time(value: Any) -> int:
    """Minutes since midnight from "HH:MM". Raises ValueError with an example."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1440:
        return value
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        msg = f'{value!r} is no time of day; write it like "08:00" or "22:30" ("24:00" only as an end)'
        raise ValueError(msg)
    return int(value[:2]) * 60 + int(value[3:])


def format_time(minutes: int) -> str:
    """`HH:MM` from minutes since midnight."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def parse_zone(value: Any) -> str:
    """A known IANA zone name. Raises ValueError with an example."""
    if value == "":
        return ""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        msg = f'{value!r} is no known time zone; write it like "Europe/Berlin" or "UTC"'
        raise ValueError(msg) from None
    return str(value)


def parse_named_paths(entries: tuple[str, ...]) -> Mapping[str, Path]:
    """Paths by name, from "NAME=PATH" each. Raises ValueError with an example."""
    found: dict[str, Path] = {}
    for entry in entries:
        match = _NAMED_PATH.fullmatch(entry)
        if match is None or not (path := Path(match[2]).expanduser()).is_absolute():
            msg = f'{entry!r} is no path with a name; write it like "work=/home/me/work"'
            raise ValueError(msg)
        if match[1] in found:
            msg = f"two paths have the same name, {match[1]!r}"
            raise ValueError(msg)
        found[match[1]] = path
    return found


def _checked_paths(entries: tuple[str, ...]) -> tuple[str, ...]:
    parse_named_paths(entries)
    return entries


def _checked_length(value: timedelta) -> timedelta:
    if not value:
        msg = 'must be longer than nothing; write something like "10s" or "5m"'
        raise ValueError(msg)
    return value


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
PositiveDuration = Annotated[Duration, AfterValidator(_checked_length)]
Share = Annotated[float, Field(ge=0, le=1)]
NamedPaths = Annotated[
    tuple[str, ...],
    AfterValidator(_checked_paths),  # see parse_named_paths
    Reaches("is read, found and told to the model"),
]
TimeOfDay = Annotated[int, BeforeValidator(parse_time)]  # minutes since midnight, 0…1440
ZoneName = Annotated[str, BeforeValidator(parse_zone)]  # "" means: the next more general setting
