"""The base class of every part's settings, and value types that settings share.

Each part declares a frozen class next to its code; config.py only gathers them. The `description`
of a field is its comment in config.example.toml. Settings of outside services (models, embedders)
share the types at the end.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from agentd.core.errors import ConfigError, InvalidRequest
from agentd.core.paths import expanded
from agentd.core.secrets import Reference
from agentd.core.times import parse_duration, parse_time, parse_zone

_NAMED_PATH = re.compile(r"([a-z0-9][a-z0-9_-]{0,31})=(.+)", re.ASCII)


class Settings(BaseModel):
    """A frozen table of the configuration; unknown keys are errors, and so are TOML's `inf` and
    `nan`.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        strict=False,
        validate_default=True,
        # a table in another one is checked with it, so it needs no validator of its own
        defer_build=True,
    )


def at_defaults() -> Any:
    """Return the field of a nested table that defaults to an empty table, validated by the outer
    one. A default instance of each would need a validator of its own, which would take a thirtieth
    of the start-up time.
    """
    return Field(default_factory=dict)


class ShownAs(Struct, frozen=True):
    """Annotates a plain value that may hold secrets: `by` returns what `config show` shows of
    it.
    """

    by: Callable[[Any], Any]


class ActsOutside(Struct, frozen=True):
    """Annotates a setting that acts outside agentd or lets others see more; `how` says in which
    way. It is shown before a configuration written by somebody else is accepted. `when` says for
    which values that is true.
    """

    how: str
    when: Callable[[Any], bool] = bool


class NamedTables(Struct, frozen=True):
    """Annotates a mapping of named settings, each a table of its own in the file; the example shows
    one of them.
    """

    model: type[Settings]


def program_alone(command: Sequence[str]) -> list[str]:
    """Return the program of a command and the number of its arguments, without the arguments."""
    program, *arguments = command or [""]
    count = f"[{len(arguments)} arguments, not shown]"
    return [program, count] if arguments else list(command)


def host_alone(address: str) -> str:
    """Return an address without its path and all after it, in which services put their tokens."""
    parts = urlsplit(address)
    rest = "/[not shown]" if parts.path.strip("/") or parts.query or parts.fragment else ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{rest}" if address else ""


def address_alone(address: str) -> str:
    """Return an address without user, query and fragment, in which keys may be."""
    parts = urlsplit(address)
    rest = "?[not shown]" if parts.query or parts.fragment else ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}{rest}" if address else ""


def parse_path(value: str) -> Path:
    """Return the path that a setting names, with the home folder in place of `~`. Raises ValueError
    if no file can be there.
    """
    try:
        return expanded(value)
    except InvalidRequest as error:
        raise ValueError(f"{error.message}; {error.cure}") from None


def parse_named_paths(entries: tuple[str, ...]) -> Mapping[str, Path]:
    """Return paths by name from entries "NAME=PATH". Raises ValueError with an example."""
    found: dict[str, Path] = {}
    for entry in entries:
        match = _NAMED_PATH.fullmatch(entry)
        if match is None or not (path := parse_path(match[2])).is_absolute():
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


def _checked_path(value: str) -> str:
    parse_path(value)
    return value


def _checked_place(value: str) -> str:
    parse_path(Reference(value, "").api_key_file)
    return value


def _checked_length(value: timedelta) -> timedelta:
    if not value:
        msg = 'must be longer than nothing; write something like "10s" or "5m"'
        raise ValueError(msg)
    return value


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
PositiveDuration = Annotated[Duration, AfterValidator(_checked_length)]
Share = Annotated[float, Field(ge=0, le=1)]
FilePath = Annotated[str, AfterValidator(_checked_path)]  # expanded() where it is used
SecretPlace = Annotated[str, AfterValidator(_checked_place)]  # the text of a Reference
NamedPaths = Annotated[
    tuple[str, ...],
    AfterValidator(_checked_paths),  # see parse_named_paths
    ActsOutside("is read, found and told to the model"),
]
TimeOfDay = Annotated[int, BeforeValidator(parse_time)]  # minutes since midnight, 0…1440
ZoneName = Annotated[str, BeforeValidator(parse_zone)]  # "" means the next more general setting


OPENAI_URL = "https://api.openai.com/v1"

ServiceAddress = Annotated[  # "" means the official one
    str,
    Field(pattern=r"^(https?://.*)?$"),
    ShownAs(address_alone),
    ActsOutside("is sent conversations, notes and the key"),
]
KeyVariable = Annotated[str, ActsOutside("names the variable that the service is sent as its key")]
CredentialName = Annotated[  # "" means the usual one
    str,
    Field(pattern=r"^[A-Za-z0-9._-]*$"),
    ActsOutside("names the credential that the service is sent as its key"),
]
KeyFile = Annotated[
    FilePath,
    Field(description="file that holds the key; only its owner may read it (mode 0600)"),
    ActsOutside("is read, and sent to the service as its key"),
]


def trusted_certificates() -> ssl.SSLContext | Literal[True]:
    """Return the TLS trust for services: a context with the authorities of SSL_CERT_FILE or
    SSL_CERT_DIR, which are needed behind a company's gateway, or True (the default authorities) if
    neither is set. Raises ConfigError if they cannot be read.
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
    """Whether a request to that address without a key is useless: the official service needs one,
    other servers may not.
    """
    return base_url.rstrip("/") in ("", OPENAI_URL)
