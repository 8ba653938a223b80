"""Where the key of a service comes from, how secrets are known, and how they are kept out of everything
else.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, Protocol

from agentd.errors import ConfigError

_MAX_KEY_BYTES = 4096

# What keys of well-known services and protocols look like.
KEYS = re.compile(
    r"""(?:
      (?<![A-Za-z0-9])(?:sk|rk|pk)-[A-Za-z0-9_-]{12,}       # Anthropic, OpenAI and their like
    | (?<![A-Za-z0-9])(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{12,}
    | (?<![A-Za-z0-9])gh[oprsu]_[A-Za-z0-9]{20,}
    | (?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,}
    | (?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{16,}
    | (?<![A-Za-z0-9])(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}
    | (?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}
    | (?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}
    | (?<![A-Za-z0-9])(?:hf|pplx|gsk|xai|r8)[_-][A-Za-z0-9]{20,}
    | (?<![A-Za-z0-9])\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])  # Telegram bots
    | (?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+
    | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^\s/:@]*:[^\s/@]+(?=@)                        # user:password@ in a URL
    | (?i:(?<=bearer\ )[A-Za-z0-9._~+/-]{8,}=*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(
    r"""(?ix) (?<![\w-]) (?:
        pass(?:word|wd|phrase|code) | passwor[dt]e? | kennwort | contraseña | mot\ de\ passe
      | (?:api|secret|access|private|licen[cs]e|encryption|master)[\ _-]?key | (?:access|auth|api|bearer)[\ _-]?token
      | secret[\ _-]?(?:phrase|word|code) | (?:seed|recovery)[\ _-]?(?:phrase|words|codes?|key)
      | pin(?:[\ -]?(?:code|number))? | cv[vc] | (?:2fa|otp)[\ _-]?(?:code|secret)
      | (?:credit|debit|bank)[\ _-]?card(?:[\ _-]?number)? | social\ security\ number | ssn
    )s?
    (?: \s+ (?:for|of|to|on|für|zu|zum|vom|de|del|pour) \s+ [^\n.:=]{1,60}? )?
    \s* (?: [:=] | \b(?:is|are|was|ist|lautet|sind|es|est)\b:? ) \s* (?P<told>\S+)
    """
)
_CARD = re.compile(
    r"(?<![\d-])(?:\d{4}[ -]){3}\d{1,7}(?![\d-])|(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"
)
_NOT_TOLD = re.compile(  # what is said about a password without telling it
    r"an?|the|in|on|at|not?|now|too|very|wrong|right|expired|stored|saved|kept|required|missing|changed"
    r"|reset|different|gone|lost|hard|weak|strong|long|short|safe|old|new|nicht|im|falsch|weg|"
)


class Secret:
    """A text that shows itself only to who asks with `reveal`."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        """The text itself, for the one who sends it."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        msg = "a secret is not pickled"
        raise TypeError(msg)


def tells_secret(text: str) -> bool:
    """Whether the text holds what looks like a key or a card's number, or says what a password is."""
    if KEYS.search(text) or _CARD.search(text):
        return True
    told = (match["told"].strip("\"'`.,;!?*").casefold() for match in _NAMED.finditer(text))
    return not all(map(_NOT_TOLD.fullmatch, told))


class KeyPlaces(Protocol):
    """Settings that name the places of a key, in a table of the configuration."""

    @property
    def key_variable(self) -> str:
        """The environment variable."""

    @property
    def key_credential(self) -> str:
        """The systemd credential."""

    @property
    def api_key_file(self) -> str:
        """The file; "" if there is none."""

    @property
    def table(self) -> str:
        """The table, for messages: `[provider]`."""


def find_key(settings: KeyPlaces, environ: Mapping[str, str]) -> Secret | None:
    """The key from the environment variable, the systemd credential or the file, in this order;
    None if there is none.

    Raises ConfigError for a key that cannot be used: a file that others may read or that is
    missing although configured, or a text that is no key. The text itself is never in the error.
    """
    variable, credential = settings.key_variable, settings.key_credential
    if environ.get(variable, "").strip():
        return _secret(environ[variable], f"environment variable {variable}")
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if folder:
        path = Path(folder) / credential
        if path.is_file():
            # systemd owns the folder and its modes; a group bit there is an ACL mask.
            text = _read(path, settings.table, private=False)
            return _secret(text, f"credential {credential}")
    if settings.api_key_file:
        path = Path(settings.api_key_file).expanduser()
        return _secret(_read(path, settings.table, private=True), f"file {path}")
    return None


def _read(path: Path, table: str, *, private: bool) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(
                    f"The key file {str(path)!r} is not a regular file.",
                    cure=f"Let {table} api_key_file name a file that holds the key.",
                )
            if private and mode & 0o077:
                raise ConfigError(
                    f"The key file {str(path)!r} can be read or changed by others.",
                    cure=f"Run `chmod 600 {path}`, and think about a new key.",
                )
            return file.read(_MAX_KEY_BYTES + 1).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigError(
            f"The key file {str(path)!r} cannot be read: {error.strerror}.",
            cure=f"Correct {table} api_key_file, or the file's owner and mode.",
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
