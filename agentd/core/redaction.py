"""Detects secrets in texts, and removes them. Pure.

There are two levels. The log hides whatever might be a key (`text`). What is stored (transcripts,
notes) loses only spans in a format that a service has published and values known to be secrets
(`kept`), so that an id which merely looks odd stays.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from agentd.core.text import at_first_use

_HIDDEN = "[secret]"
_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:(?:api|access|private)_?key|token|secret|password|passwd)$"
)
_SECRET_FIELD = re.compile(
    r"(?i)(?:authorization|cookie|(?:x[-_])?api[-_]?key|(?:\w+_)?(?:token|secret|password))"
)

# Formats of keys of well-known services and protocols. The look-behind and look-ahead come first
# because they rule out nearly every position of a text.
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
_END = r"(?![A-Za-z0-9]|[_-][A-Za-z0-9])"
_PEM = "-----BEGIN "
_PREFIXES = (  # (kind, literal prefix, pattern of the rest), as the issuers publish them
    ("anthropic", "sk-ant-", r"[A-Za-z0-9_-]{16,}"),
    ("openai", "sk-", r"(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}"),
    ("openai", "sk-", rf"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{{20,}}{_END}"),
    ("openrouter", "sk-or-v1-", r"[0-9a-f]{32,}"),
    ("stripe", "whsec_", r"[A-Za-z0-9]{24,}"),
    *(("stripe", f"{kind}k_live_", r"[A-Za-z0-9]{16,}") for kind in "sr"),
    *(("stripe", f"{kind}k_test_", r"[A-Za-z0-9]{16,}") for kind in "sr"),
    *(("github", f"gh{kind}_", r"[A-Za-z0-9]{20,}") for kind in "opusr"),
    ("github", "github_pat_", r"[A-Za-z0-9_]{22,}"),
    ("gitlab", "glpat-", r"[A-Za-z0-9_-]{20,}"),
    ("slack", "xox", r"[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("slack", "xapp-", r"\d-[A-Za-z0-9-]{10,}"),
    *(("aws", start, rf"[A-Z0-9]{{16}}{_END}") for start in ("AKIA", "ASIA")),
    ("google", "AIza", rf"[A-Za-z0-9_-]{{35}}{_END}"),
    ("google", "GOCSPX-", r"[A-Za-z0-9_-]{24,}"),
    ("huggingface", "hf_", r"[A-Za-z0-9]{30,}"),
    ("groq", "gsk_", r"[A-Za-z0-9]{40,}"),
    ("xai", "xai-", r"[A-Za-z0-9]{60,}"),
    ("perplexity", "pplx-", r"[A-Za-z0-9]{40,}"),
    ("replicate", "r8_", r"[A-Za-z0-9]{36,}"),
    ("npm", "npm_", r"[A-Za-z0-9]{36}"),
    ("pypi", "pypi-AgE", r"[A-Za-z0-9_-]{40,}"),
    *(("digitalocean", f"do{kind}_v1_", r"[0-9a-f]{64}") for kind in "opr"),
    ("sendgrid", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("age", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    (
        "jwt",  # inside a run of its own letters a token starts only if its first part is short
        "eyJ",
        (
            r"(?:(?<![_-]eyJ)|(?=[A-Za-z0-9_-]{8,512}+\.))"
            r"[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{10,}"
        ),
    ),
    (
        "pem",  # encoded lines must follow, complete or cut off
        _PEM,
        (
            r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[\s>|]|\\[nrt])*+"
            r"(?:[A-Za-z-]{1,30}: [^\n\\]{0,200}(?:[\s>|]|\\[nrt])++)*+"
            r"(?:[A-Za-z0-9+/=]{16,}+(?:[\s>|]|\\[nrt])*+)++"
            r"(?:[A-Za-z0-9+/=]{0,15}(?:[\s>|]|\\[nrt])*+-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: "
            r"BLOCK)?-----)?"
        ),
    ),
)
# What may stand directly before a key although it ends with a letter or digit, because it is no
# part of a word: escapes and colours.
_ENDINGS = (
    r"\\[abefnrtv]",  # escapes as program texts and JSON have them,
    r"\\u[0-9A-Fa-f]{4}",
    r"\\x[0-9A-Fa-f]{2}",
    r"%[0-9A-Fa-f]{2}",  # as addresses have them,
    *(rf"\[[0-9;]{{{size}}}m" for size in range(9)),  # and colours of a terminal
)


def _at_its_beginning(start: str) -> str:
    """Return a pattern that matches `start` only where no letter or digit of a word precedes it."""
    start = re.escape(start)
    ends = "".join(rf"|(?<={ending}{start})" for ending in _ENDINGS)
    return rf"{start}(?:(?<![A-Za-z0-9]{start}){ends})"


# (kind, literal that every such key contains, pattern compiled at first use). A pattern begins with
# its literal letters, which the regex engine finds fastest, and only then looks back. Most are
# never needed.
_FORMATS = (
    *(
        (
            kind,
            start,
            at_first_use(f"{_at_its_beginning(start)}{rest}"),
        )
        for kind, start, rest in _PREFIXES
    ),
    (
        "telegram",
        ":AA",
        at_first_use(rf"{_at_its_beginning('')}\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),
    ),
)
_NAMED = at_first_use(
    r"""(?ix) (?<![\w-]) (?P<name> (?:
        pass(?:word|wd|phrase|code) | passwor[dt]e? | kennwort | contraseña | mot\ de\ passe
      | (?:api|secret|access|private|licen[cs]e|encryption|master)[\ _-]?key
      | (?:access|auth|api|bearer)[\ _-]?token
      | secret[\ _-]?(?:phrase|word|code) | (?:seed|recovery)[\ _-]?(?:phrase|words|codes?|key)
      | pin(?:[\ -]?(?:code|number))? | cv[vc] | (?:2fa|otp)[\ _-]?(?:code|secret)
      | (?:credit|debit|bank)[\ _-]?card(?:[\ _-]?number)? | social\ security\ number | ssn
    )s? )
    (?: \s++ (?:for|of|to|on|für|zu|zum|vom|de|del|pour) \s++ [^\n.:=]{0,59}? [^\s.:=] )?
    \s*+ (?: [:=] | \b(?:is|are|was|ist|lautet|sind|es|est)\b:? ) \s*+ (?P<told>\S+)
    """
)
_CARD = re.compile(
    r"(?<![\d-])(?:\d{4}[ -]){3}\d{1,7}(?![\d-])|(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"
)
_NOT_TOLD = re.compile(  # words about a password that do not reveal it
    r"an?|the|in|on|at|not?|now|too|very|wrong|right|expired|stored|saved|kept|required|missing"
    r"|changed"
    r"|reset|different|gone|lost|hard|weak|strong|long|short|safe|old|new|nicht|im|falsch|weg|"
)


class KeptSecrets(Struct, frozen=True):
    """A text with its secrets replaced; `cuts` are (start, end, new length) of each replaced
    span.
    """

    text: str
    cuts: tuple[tuple[int, int, int], ...] = ()

    def moved(self, place: int) -> int:
        """Return the new offset of a place in the original; a place within a cut maps to its
        end.
        """
        for start, end, size in reversed(self.cuts):
            if place > start:
                before = self.moved(start)
                return before + size + max(0, place - end)
        return place


class Redactor:
    """Hides whatever looks like a key, and the known secret values."""

    def __init__(self, *secrets: str, formats: bool = True) -> None:
        """`secrets` are known values. With `formats` False, `kept` replaces only those."""
        self._secrets: dict[str, tuple[str, ...]] = {}
        self._formats = formats
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Hide this value from now on, plain and encoded. Values under 8 characters are ignored,
        because they would hide ordinary text.
        """
        if len(secret) >= 8:
            self._secrets[secret] = tuple(_spellings(secret))

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        for spellings in self._secrets.values():
            for spelling in spellings:
                text = text.replace(spelling, _HIDDEN)
        return _KEYS.sub(_HIDDEN, text)

    def kept(self, text: str, *, in_lines: bool = False) -> KeptSecrets:
        """Replace each key in `text` by `[secret:KIND]`; `in_lines` keeps the number of lines."""
        cuts: list[tuple[int, int, int]] = []
        parts: list[str] = []
        at = 0
        for start, end, kind in self._found(text):
            lines = "\n" * text.count("\n", start, end) if in_lines else ""
            word = f"[secret:{kind}]{lines}"
            parts += (text[at:start], word)
            cuts.append((start, end, len(word)))
            at = end
        return KeptSecrets("".join((*parts, text[at:])), tuple(cuts)) if cuts else KeptSecrets(text)

    def holds(self, text: str) -> bool:
        """Whether `kept` would replace something."""
        return next(self._found(text), None) is not None

    def holds_behind(self, text: bytes, start: int) -> bool:
        """Whether `kept` would replace something, given that the bytes before `start` hold no
        secret; takes time for the bytes after `start` only.
        """
        begin = text.rfind(b"\n", 0, start) + 1  # only known values and PEM keys can span lines
        key = text.rfind(_PEM.encode(), 0, start) if self._formats else -1
        longest = max((len(one.encode(errors="replace")) for one in self._longest()), default=0)
        first = max(0, min(begin, start - longest, key if key >= 0 else begin))
        return self.holds(text[first:].decode(errors="replace"))

    def holds_beside(self, text: str, known: str) -> bool:
        """Whether `kept` would replace something in `text`, given that `known` holds no secret;
        faster, because only lines that `known` lacks are checked.
        """
        if _PEM in text or any("\n" in secret for secret in self._secrets):
            return self.holds(text)
        fresh = set(text.split("\n")).difference(known.split("\n"))
        return any(map(self.holds, fresh))

    def _longest(self) -> Iterator[str]:
        return (max(spellings, key=len) for spellings in self._secrets.values())

    def plain(self, value: Any) -> Any:
        """Return JSON-like data with each string replaced as `kept` does, field names included."""
        match value:
            case str():
                return self.kept(value).text
            case Mapping():
                return {
                    self.kept(str(name)).text: self.plain(inner) for name, inner in value.items()
                }
            case list() | tuple():
                return [self.plain(inner) for inner in value]
            case _:
                return value

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, kind) of each key, without overlaps."""
        spans = [
            (found.start(), found.end(), kind)
            for kind, hint, pattern in (_FORMATS if self._formats else ())
            if hint in text
            for found in pattern().finditer(text)
        ]
        for spellings in self._secrets.values():
            for spelling in spellings:
                start = text.find(spelling)
                while start >= 0:
                    spans.append((start, start + len(spelling), "configured"))
                    start = text.find(spelling, start + len(spelling))
        last = 0
        spans.sort(key=lambda span: (span[0], -span[1]))
        for number, (start, end, kind) in enumerate(spans):
            if end <= last:
                continue
            reach = end
            for at in range(number + 1, len(spans)):  # overlapping keys are joined
                if spans[at][0] >= reach:
                    break
                reach = max(reach, spans[at][1])
            yield max(start, last), reach, kind
            last = reach

    def value(self, value: Any) -> Any:
        """Return plain data without secrets, at any depth; other objects become their redacted
        repr.
        """
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


def _spellings(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret in texts: plain, URL-encoded, in hex, and in Base64 at each
    of the three alignments, without the characters that depend on neighbouring bytes.
    """
    yield secret
    for name in {quote(secret, safe=""), quote(secret, safe="/")} - {secret}:
        yield name
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), name)
    data = secret.encode()
    yield data.hex()
    for before in range(3):
        coded = base64.b64encode(bytes(before) + data).decode()
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        yield coded[first:last]
        yield coded[first:last].replace("+", "-").replace("/", "_")


_shapes_only = Redactor()


def redact(text: str) -> str:
    """Return `text` without anything that looks like a key."""
    return _shapes_only.text(text)


def holds_secret(text: str) -> bool:
    """Whether something in `text` looks like a key or a password."""
    return _KEYS.search(text) is not None


def names_of_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the environment variables whose names mark them as secrets."""
    return tuple(name for name in environ if _SECRET_NAME.search(name))


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the variables that `names_of_secrets` returns."""
    return tuple(environ[name] for name in names_of_secrets(environ))


class SecretSpan(Struct, frozen=True):
    """A span of a text that reveals a secret: `value` is the secret, `name` what the text calls it
    ("" for a bare key or card number).
    """

    start: int
    end: int
    name: str
    value: str


def tellings(text: str) -> Iterator[SecretSpan]:
    """Yield everything in a text that looks like a key or a card number, and every statement of
    what a password is.
    """
    for pattern in (_KEYS, _CARD):
        for found in pattern.finditer(text):
            yield SecretSpan(*found.span(), "", found[0])
    for found in _NAMED().finditer(text):
        value = found["told"].strip("\"'`.,;!?*")
        if not _NOT_TOLD.fullmatch(value.casefold()):
            yield SecretSpan(*found.span(), found["name"], value)


def tells_secret(text: str) -> bool:
    """Whether the text reveals a secret."""
    return next(tellings(text), None) is not None
