"""Finds the keys of services, and keeps them out of logs and errors."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, Protocol

from msgspec import Struct

from agentd.core.errors import ConfigError
from agentd.core.paths import expanded

_MAX_KEY_BYTES = 4096
_PLACES = ("credential:", "file:")


class Secret:
    """A secret text that is shown only through `reveal`; str, repr and format show its source."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        """Return the text itself, for the code that sends it."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        msg = "a secret is not pickled"
        raise TypeError(msg)


class KeyPlaces(Protocol):
    """Settings that say where a key can be found: environment variable, systemd credential, or
    file.
    """

    @property
    def key_variable(self) -> str:
        """The name of the environment variable."""

    @property
    def key_credential(self) -> str:
        """The name of the systemd credential."""

    @property
    def api_key_file(self) -> str:
        """The path of the file; "" if there is none."""

    @property
    def table(self) -> str:
        """The table of the configuration, for messages: `[provider]`."""


class Reference(Struct, frozen=True):
    """The place of a secret: `NAME` of an environment variable, `credential:NAME` of systemd, or
    `file:PATH`. `table` is the configuration table that names it, for messages.
    """

    text: str
    table: str

    @property
    def key_variable(self) -> str:
        """The name of the environment variable; "" for another kind of place."""
        return "" if self.text.startswith(_PLACES) else self.text

    @property
    def key_credential(self) -> str:
        """The name of the systemd credential; "" for another kind of place."""
        return self._behind("credential:")

    @property
    def api_key_file(self) -> str:
        """The path of the file; "" for another kind of place."""
        return self._behind("file:")

    def _behind(self, prefix: str) -> str:
        return self.text.removeprefix(prefix) if self.text.startswith(prefix) else ""


def find_key(settings: KeyPlaces, environ: Mapping[str, str]) -> Secret | None:
    """Return the key from the environment variable, the systemd credential or the file, in this
    order; None if there is none.

    Raises ConfigError for a key that cannot be used: a configured file that is missing or that
    others may read, or a text that is no key. The error never contains the text.
    """
    variable, credential = settings.key_variable, settings.key_credential
    if environ.get(variable, "").strip():
        return _secret(environ[variable], f"environment variable {variable}")
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if folder:
        path = Path(folder) / credential
        if path.is_file():
            # systemd owns the folder and its modes; a set group bit is only an ACL mask.
            text = _read(path, f"{settings.table} api_key_file", private=False)
            return _secret(text, f"credential {credential}")
    if settings.api_key_file:
        path = expanded(settings.api_key_file)
        return _secret(_read(path, f"{settings.table} api_key_file", private=True), f"file {path}")
    return None


def find_secret(place: Reference, environ: Mapping[str, str]) -> Secret:
    """Return the secret at that place. Raises ConfigError as `find_key` does, and if there is
    none.
    """
    found = find_key(place, environ)
    if found is None:
        msg = f"there is no {place.text}, which {place.table} names"
        raise ConfigError(msg, cure="set it where the daemon runs")
    return found


def read_key(path: Path, setting: str) -> Secret:
    """Return the key in a file that nobody else may read. `setting` is the setting that named the
    file, such as `[graph] key_file`. Raises ConfigError as `find_key` does.
    """
    return _secret(_read(path, setting, private=True), f"file {path}")


def _read(path: Path, setting: str, *, private: bool) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(
                    f"The key file {str(path)!r} is not a regular file.",
                    cure=f"Let {setting} name a file that holds the key.",
                )
            if private and mode & 0o077:
                raise ConfigError(
                    f"The key file {str(path)!r} can be read or changed by others.",
                    cure=(
                        f"Run `{shlex.join(['chmod', '600', str(path)])}`, then `agentd restart`; "
                        "and think about a new key."
                    ),
                )
            return file.read(_MAX_KEY_BYTES + 1).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigError(
            f"The key file {str(path)!r} cannot be read: {error.strerror}.",
            cure=f"Correct {setting}, or the file's owner and mode.",
        ) from None


def _secret(text: str, source: str) -> Secret:
    key = text.strip()
    if (
        not key
        or len(key) > _MAX_KEY_BYTES
        or not key.isascii()
        or not key.isprintable()
        or " " in key
    ):
        raise ConfigError(
            f"What the {source} holds is no key: it must be one word of plain ASCII.",
            cure=f"Put the key, and nothing else, into the {source}.",
        )
    return Secret(key, source)
