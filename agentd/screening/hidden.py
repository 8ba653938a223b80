"""What a reader of the rendered text would not see: invisible characters, comments, encoded text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from agentd.domain.suspicion import Severity
from agentd.screening.shapes import ADDRESSEE, ORDER

_LONG = 400  # characters of encoded text that are unusual by themselves
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{28,}={0,2}")
_HEX = re.compile(r"[0-9a-fA-F]{40,}")
_READABLE = re.compile(r"[\t\n\r -~\u00a0-\ufffd]*")
_INVISIBLE = tuple(
    (severity, reason, re.compile(pattern))
    for severity, reason, pattern in (
        (
            Severity.HIGH,
            "has invisible tag characters",
            "(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]+",
        ),
        (
            Severity.HIGH,
            "hides data in variation selectors",
            "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}",
        ),
        (
            Severity.HIGH,
            "hides data in invisible characters",
            "[\u200b-\u200d\u2060-\u2064\ufeff\u00ad\u180e]{8,}",
        ),
        (Severity.HIGH, "turns the direction of text", "[\u202d\u202e]"),
        (Severity.LOW, "turns the direction of text", "[\u202a\u202b\u2066-\u2068]"),
        (
            Severity.MEDIUM,
            "has invisible characters within words",
            "(?<=[a-zA-Z])[\u200b\u200c\u2060\ufeff]+(?=[a-zA-Z])",
        ),
    )
)


def invisible(text: str) -> Iterator[tuple[Severity, str, int, int]]:
    """Severity, reason, start and end of what has no shape on a screen."""
    for severity, reason, pattern in _INVISIBLE:
        for found in pattern.finditer(text):
            yield severity, reason, found.start(), found.end()


def comments(plain: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and words of each HTML comment; one that is never closed reaches to the end."""
    at = plain.find("<!--")
    while at >= 0:
        end = plain.find("-->", at + 4)
        end = len(plain) if end < 0 else end
        yield at, end, plain[at + 4 : end]
        at = plain.find("<!--", end)


def speaks_to_the_agent(words: str) -> bool:
    """Whether words that nobody is shown tell the agent what to do."""
    return ADDRESSEE.search(words) is not None and ORDER.search(words) is not None


def encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Start and end of what is encoded in Base64 or hex, with what it says; "" when that is no text."""
    for found in _HEX.finditer(text):
        digits = found[0][: len(found[0]) & ~1]
        yield found.start(), found.end(), _read(bytes.fromhex(digits))
    for found in _ENCODED.finditer(text):
        body = found[0].rstrip("=").replace("-", "+").replace("_", "/")
        body = body[: -1 if len(body) % 4 == 1 else None]
        try:
            said = _read(base64.b64decode(body + "=" * (-len(body) % 4)))
        except binascii.Error:
            said = ""
        yield found.start(), found.end(), said


def is_long(start: int, end: int) -> bool:
    """Whether a run of encoded text is unusual whatever it holds."""
    return end - start >= _LONG


def _read(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return " ".join(text.split("\n")) if _READABLE.fullmatch(text) else ""
