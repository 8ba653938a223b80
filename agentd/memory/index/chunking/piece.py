"""The piece that every chunker yields, and the token estimate and cutting that chunkers share."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import accumulate

from msgspec import Struct

_WIDE = re.compile(r"[^\x00-\u2e7f]")  # in these scripts, about one token a character
_SENTENCE = re.compile(r"\n|(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+\s+|[。！？]+")
_SPACE = re.compile(r"\s+")
_GAP = re.compile(r"\s*")


class Piece(Struct, frozen=True):
    """The lines from `first` up to but not including `end`, counted from 0. `text` is their whole
    text, or a part of it if a line is too long for one piece.
    """

    first: int
    end: int
    text: str
    speaker: str = ""
    context: str = ""
    day: date | None = None
    importance: float = 1.0  # 0..1


class Lines:
    """The lines of a file, and the same lines as one text."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.text = "\n".join(lines)
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def span(self, first: int, end: int) -> tuple[int, int]:
        """Return the character offsets at which these lines begin and end in the text."""
        return self._starts[first], self._starts[end] - 1

    def stretch(self, begin: int, end: int) -> Piece:
        """Return the piece of the text between two character offsets."""
        first = bisect_right(self._starts, begin) - 1
        return Piece(first, bisect_right(self._starts, max(begin, end - 1)), self.text[begin:end])

    def whole(self, first: int, end: int) -> Piece:
        """Return these lines as a piece."""
        return Piece(first, end, "\n".join(self.lines[first:end]))


def tokens_in(text: str) -> int:
    """Estimate the tokens of a text: one for four characters, one for each in scripts such as
    Chinese.
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide + (len(text) - wide + 3) // 4


def cuts(text: str, limit: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of consecutive parts of at most `limit` tokens. A part ends at the end of a
    sentence if possible, else of a word; the space around a part is left out.
    """
    begin, last = _skip(text, 0), len(text.rstrip())
    while tokens_in(text[begin:last][: 4 * limit + 1]) > limit:
        end = begin + _end(text[begin : begin + 4 * limit + 1], limit)
        yield begin, begin + len(text[begin:end].rstrip())
        begin = _skip(text, end)
    if begin < last:
        yield begin, last


def _skip(text: str, begin: int) -> int:
    found = _GAP.match(text, begin)
    return found.end() if found else begin


def _end(text: str, limit: int) -> int:
    room = _room(text, limit)
    for ends in (_SENTENCE, _SPACE):
        found = [m.end() for m in ends.finditer(text, 0, room + 1) if room // 3 < m.end() <= room]
        if found:
            return found[-1]
    return room


def _room(text: str, limit: int) -> int:
    """Return how many of the first characters make up to `limit` tokens."""
    low, high = limit, min(4 * limit, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens_in(text[:middle]) <= limit else (low, middle - 1)
    return low
