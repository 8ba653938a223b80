"""The base of every part's settings, and the kinds of value that settings share.

A part declares a frozen class next to its code; config.py only gathers them. Each field carries a
`description`: it is the comment in config.example.toml.

Settings of an outside service share more, whether it answers or turns texts into vectors.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from agentd.core.errors import ConfigError
from agentd.core.times import parse_duration, parse_time, parse_zone

_NAMED_PATH = re.compile(r"([a-z0-9][a-z0-9_-]{0,31})=(.+)", re.ASCII)


class Settings(BaseModel):
    """A frozen table of the configuration; unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=False,
        validate_default=True,
        defer_build=True,  # a table in another one is checked with it, so it needs no validator of its own
    )


def at_defaults() -> Any:
    """A table within another one, where the file says nothing of it: read as an empty one, by the table that
    it is in. Made by itself each would need a validator of its own, a thirtieth of a start for all.
    """
    return Field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class Apart:
    """Settings by name that the file has in a table each: the example shows the keys of one."""

    model: type[Settings]


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


OPENAI_URL = "https://api.openai.com/v1"

ServiceAddress = Annotated[  # "" means the official one
    str,
    Field(pattern=r"^(https?://.*)?$"),
    Shown(address_alone),
    Reaches("is sent conversations, notes and the key"),
]
KeyVariable = Annotated[str, Reaches("names the variable that the service is sent as its key")]
CredentialName = Annotated[  # "" means the usual one
    str,
    Field(pattern=r"^[A-Za-z0-9._-]*$"),
    Reaches("names the credential that the service is sent as its key"),
]
KeyFile = Annotated[
    str,
    Field(description="file that holds the key; only its owner may read it (mode 0600)"),
    Reaches("is read, and sent to the service as its key"),
]


def trusted_certificates() -> ssl.SSLContext | Literal[True]:
    """What the certificate of a service is held against: the authorities that SSL_CERT_FILE or SSL_CERT_DIR
    name, as for other programs, since behind a company's gateway nothing is reached without; True where
    neither is set, which stands for the usual ones. Raises ConfigError for one that cannot be read.
    """
    file, folder = (os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    if not (file or folder):
        return True
    try:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except OSError as error:
        raise ConfigError(
            f"SSL_CERT_FILE names no file of certificates: {file!r} ({error.strerror or 'no PEM'})",
            cure="correct it in the daemon's environment, or take it out",
        ) from None


def openai_needs_key(base_url: str) -> bool:
    """Whether there is no use in asking that address without a key; other servers than the official
    one may need none.
    """
    return base_url.rstrip("/") in ("", OPENAI_URL)
