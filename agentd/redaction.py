"""What looks like a secret, and texts without it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_HIDDEN = "[secret]"
_SECRET_NAME = re.compile(r"(?i)(?:^|_)(?:api_?key|token|secret|password|passwd)$")
_SECRET_FIELD = re.compile(
    r"(?i)(?:authorization|cookie|(?:x[-_])?api[-_]?key|(?:\w+_)?(?:token|secret|password))"
)

# What keys of well-known services and protocols look like.
# Nearly every place of a text is passed over by the first look at what stands before it.
_KEYS = re.compile(
    r"""(?:
      (?<![A-Za-z0-9]) (?=[srpgxAhe\d]) (?:
          (?:sk|rk|pk)-[A-Za-z0-9_-]{12,}       # Anthropic, OpenAI and their like
        | (?:sk|rk)_(?:live|test)_[A-Za-z0-9]{12,}
        | gh[oprsu]_[A-Za-z0-9]{20,}
        | github_pat_[A-Za-z0-9_]{20,}
        | glpat-[A-Za-z0-9_-]{16,}
        | (?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}
        | (?:AKIA|ASIA)[A-Z0-9]{16}
        | AIza[A-Za-z0-9_-]{30,}
        | (?:hf|pplx|gsk|xai|r8)[_-][A-Za-z0-9]{20,}
        | \d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])  # Telegram bots
        | eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+
      )
    | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^\s/:@]*:[^\s/@]+(?=@)                        # user:password@ in a URL
    | (?i:(?<=bearer\ )[A-Za-z0-9._~+/-]{8,}=*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(
    r"""(?ix) (?<![\w-]) (?P<name> (?:
        pass(?:word|wd|phrase|code) | passwor[dt]e? | kennwort | contraseña | mot\ de\ passe
      | (?:api|secret|access|private|licen[cs]e|encryption|master)[\ _-]?key | (?:access|auth|api|bearer)[\ _-]?token
      | secret[\ _-]?(?:phrase|word|code) | (?:seed|recovery)[\ _-]?(?:phrase|words|codes?|key)
      | pin(?:[\ -]?(?:code|number))? | cv[vc] | (?:2fa|otp)[\ _-]?(?:code|secret)
      | (?:credit|debit|bank)[\ _-]?card(?:[\ _-]?number)? | social\ security\ number | ssn
    )s? )
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


class Redactor:
    """Hides what looks like a key, and the values it was told are secrets."""

    def __init__(self, *secrets: str) -> None:
        self._secrets: set[str] = set()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Hide this value from now on; values under 8 characters would hide ordinary text."""
        if len(secret) >= 8:
            self._secrets.add(secret)

    def text(self, text: str) -> str:
        """`text` without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return _KEYS.sub(_HIDDEN, text)

    def value(self, value: Any) -> Any:
        """Plain data without secrets, at any depth; objects become their redacted repr."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Mapping):
            return {self.text(str(k)): self._field(str(k), v) for k, v in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(inner) for inner in value]
        return self.text(repr(value))

    def _field(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and _SECRET_FIELD.fullmatch(name):
            return _HIDDEN
        return self.value(value)


_shapes_only = Redactor()


def redact(text: str) -> str:
    """`text` without anything that looks like a key."""
    return _shapes_only.text(text)


def holds_secret(text: str) -> bool:
    """Whether something in `text` looks like a key or a password."""
    return _KEYS.search(text) is not None


def known_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables whose names say that they are secrets."""
    return tuple(value for name, value in environ.items() if _SECRET_NAME.search(name))


@dataclass(frozen=True, slots=True)
class Telling:
    """Characters of a text that tell a secret: its value, and what it is called, "" where they are a key
    or the number of a card alone.
    """

    start: int
    end: int
    name: str
    value: str


def tellings(text: str) -> Iterator[Telling]:
    """What looks like a key or a card's number, and what says what a password is."""
    for pattern in (_KEYS, _CARD):
        for found in pattern.finditer(text):
            yield Telling(*found.span(), "", found[0])
    for found in _NAMED.finditer(text):
        value = found["told"].strip("\"'`.,;!?*")
        if not _NOT_TOLD.fullmatch(value.casefold()):
            yield Telling(*found.span(), found["name"], value)


def tells_secret(text: str) -> bool:
    """Whether the text tells any."""
    return next(tellings(text), None) is not None
