"""Where sentences begin and end in what people type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agentd.statements.calendar import MONTHS

_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s|\Z)|[。！？]+[”』」]?|\n")
_SHORT = re.compile(
    r"dr|mr|mrs|ms|st|no|nr|prof|vs|eg|ie|etc|approx|str|ca|bzw|jr|sr|inc|ltd|co|dept|fig|vol"
    r"|ave|tel|evtl|ggf|inkl|max|min|mio|usw|zb|dh|ua"
)
_BULLET = re.compile(r"\s*(?:[-*+•–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_MONTH_WORD = re.compile(rf"(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)
_LOOKS_BACK = 14


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence; `text[start:end]` of what was split, without blanks and bullets around it."""

    text: str
    start: int
    end: int


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences and lines of a text, in order, those without a letter or digit left out."""
    start = 0
    for match in _END.finditer(text):
        if match[0] == "." and _goes_on(text, match.start()):
            continue
        yield from _sentence(text, start, match.end())
        start = match.end()
    yield from _sentence(text, start, len(text))


def _sentence(text: str, start: int, end: int) -> Iterator[Sentence]:
    piece = text[start:end]
    bullet = _BULLET.match(piece)
    body = piece[bullet.end() :] if bullet else piece
    start = end - len(body.lstrip())
    body = body.strip()
    if any(map(str.isalnum, body)):
        yield Sentence(body, start, start + len(body))


def _goes_on(text: str, dot: int) -> bool:
    """Whether the full stop ends a short form, an initial or the number of a list."""
    head = text[max(0, dot - _LOOKS_BACK) : dot]
    words = head.split()
    word = words[-1].replace(".", "").casefold().lstrip("(\"'") if words else ""
    if head.endswith("\n") or (word.isdigit() and head.strip(" \n") == word):
        return True
    if (
        word.endswith("str")
        or _SHORT.fullmatch(word)
        or (len(word) == 1 and word.isalpha() and word != "i")
    ):
        return True
    follows = text[dot + 1 : dot + 40].split()
    if word.isdigit() and len(word) <= 2 and follows and _MONTH_WORD.match(follows[0]):
        return True
    return bool(follows) and follows[0][0].islower()
