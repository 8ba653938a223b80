"""Finds suspicious text in what goes into prompts. Pure; takes time proportional to the text.

This is no security boundary: what a model may write, and which text of others it sees, is decided
by where the text comes from. The findings are warnings shown to the user with a question.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.screening.ignorable import IGNORABLE, suspect
from agentd.core.screening.lookalikes import passes_for, suspicious_words


class Severity(StrEnum):
    """How serious a suspicious place is."""

    HIGH = "high"  # hidden from people: the user is asked
    LOW = "low"  # occurs in attacks and in honest notes: only a warning


class Suspicion(Struct, frozen=True):
    """One suspicious place. `line` and `column` count from 1. Findings with equal `key` are the
    same finding, whatever their line number.
    """

    severity: Severity
    reason: str
    line: int
    column: int
    key: str = ""

    @property
    def is_high(self) -> bool:
        """Whether the user has to be asked."""
        return self.severity is Severity.HIGH

    def __str__(self) -> str:
        return f"{self.line}:{self.column} {self.reason} ({self.severity})"

    def as_json(self) -> dict[str, str | int]:
        """Return the shape in answers."""
        return {
            "severity": str(self.severity),
            "reason": self.reason,
            "line": self.line,
            "column": self.column,
        }


_MANY = 16  # in one text; more of them can spell a word
_OVERRIDE = re.compile("[\u202d\u202e]")
_RUN = re.compile(f"[{IGNORABLE}]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_LONG = 8


def hidden(text: str) -> Iterator[tuple[str, int]]:
    """Yield (reason, offset) for characters that people cannot see but a model reads."""
    if text.isascii():
        return
    for found in _OVERRIDE.finditer(text):
        yield "turns the direction of text", found.start()
    places = suspect(text)
    for found in _RUN.finditer(text):
        yield from _in_run(text, found, places)
    if len(places) >= _MANY:
        yield "hides data in invisible characters", min(places)


def _in_run(text: str, run: re.Match[str], places: frozenset[int]) -> Iterator[tuple[str, int]]:
    start, end = run.span()
    if not places.intersection(range(start, end)):
        return
    if _TAGS.search(text, start, end):
        yield "has invisible tag characters", start
    if _SELECTORS.search(text, start, end):
        yield "hides data in variation selectors", start
    elif end - start >= _LONG:
        yield "hides data in invisible characters", start
    if start and end < len(text) and text[start - 1].isalnum() and text[end].isalnum():
        yield "has invisible characters within words", start


# Some English phrases of prompt injections. They cause only a warning, because an attacker who
# knows the list avoids it. docs/security.md says how many published attacks it finds.
_PHRASES = tuple(
    (reason, re.compile(pattern))
    for reason, pattern in (
        (
            "asks to set aside what it was told before",
            (
                r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,40}\b(?:previous|prior"
                r"|above|earlier|all|any|your)\b"
                r"[^.!?]{0,20}\b(?:instruct|prompt|rule|guideline|direct)"
            ),
        ),
        (
            "speaks in the role of the system",
            (
                r"<\|(?:im_start|system)|</?system>|\[/?inst\]|<</?sys>>"
                r"|\b(?:system|admin|developer) (?:prompt|message|override|notice|instructions?) ?:"
            ),
        ),
        (
            "asks to be kept from the user",
            (
                r"\b(?:not|never|don't|without) (?:tell|inform|mention|notify|alert|ask"
                r"|warn)(?:ing)?\b"
                r"[^.!?]{0,30}\b(?:users?|owner|human|anyone)\b"
            ),
        ),
        (
            "gives the agent another role or other orders",
            (
                r"\byou are (?:now|no longer)\b|\b(?:new|updated|real|true) instructions?\b"
                r"|\bfrom now on,? you\b"
                r"|\bpretend (?:to be|you are)\b"
            ),
        ),
        (
            "wants secrets to be sent",
            (
                r"\b(?:send|post|upload|forward|e-?mail|exfiltrate|leak)\b[^.!?]{0,60}"
                r"\b(?:passwords?|api keys?|access tokens?|credentials|private keys?|\.env)\b"
            ),
        ),
    )
)


_IGNORED = re.compile(f"[{IGNORABLE}]")


class _Folding(dict[int, str]):
    """A table for `str.translate` that computes each character once."""

    def __missing__(self, code: int) -> str:
        self[code] = made = _fold(chr(code))
        return made


def phrases(text: str) -> Iterator[tuple[str, int]]:
    """Yield (reason, offset) of each suspicious phrase."""
    folded = text.translate(_FOLDING)
    found = sorted((m.start(), reason) for reason, p in _PHRASES for m in p.finditer(folded))
    at = length = 0  # a single pass maps folded offsets back to the source
    for start, reason in found:
        while length + len(_FOLDING[ord(text[at])]) <= start:
            length += len(_FOLDING[ord(text[at])])
            at += 1
        yield reason, at


def _fold(char: str) -> str:
    if char.isspace():
        return " "
    if unicodedata.category(char) in {"Cf", "Mn", "Me", "Cc"} or _IGNORED.match(char):
        return ""
    plain = passes_for(char) or unicodedata.normalize("NFKC", char)
    return plain.casefold().replace("’", "'")


_FOLDING = _Folding()


_MOST = 40  # findings per reason; more would add nothing
_NEAR = 4_096  # characters before an addition that it may complete to something suspicious


def scan(text: str) -> tuple[Suspicion, ...]:
    """Return the suspicious places in order, each reason once per line."""
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    told: dict[tuple[str, int], Suspicion] = {}
    count = Counter[str]()
    for severity, reason, start in _places(text):
        line = bisect_left(lines, start + 1)
        if (reason, line) in told or count[reason] == _MOST:
            continue
        count[reason] += 1
        end = lines[line] if line < len(lines) else len(text)
        key = f"{reason} {text[lines[line - 1] : end].strip()}"
        column = start - lines[line - 1] + 1
        told[reason, line] = Suspicion(severity, reason, line, column, key)
    return tuple(sorted(told.values(), key=lambda s: (s.line, s.column)))


def scan_change(before: str, after: str) -> tuple[Suspicion, ...]:
    """Return the suspicions in `after` that `before` did not have, including any that the change
    completes. If text was only appended, only the end of `before` is scanned.
    """
    start = before.rfind("\n", 0, max(0, len(before) - _NEAR)) + 1
    if not start or not after.startswith(before):
        return tuple(_fresh(before, after))
    lines = before.count("\n", 0, start)
    near = _fresh(before[start:], after[start:])
    return tuple(replace(suspicion, line=suspicion.line + lines) for suspicion in near)


def _fresh(before: str, after: str) -> Iterator[Suspicion]:
    known = Counter(suspicion.key for suspicion in scan(before)) if before else Counter[str]()
    for suspicion in scan(after):
        if known[suspicion.key]:
            known[suspicion.key] -= 1
        else:
            yield suspicion


def _places(text: str) -> Iterator[tuple[Severity, str, int]]:
    for reason, start in hidden(text):
        yield Severity.HIGH, reason, start
    for reason, start in (*suspicious_words(text), *phrases(text)):
        yield Severity.LOW, reason, start
