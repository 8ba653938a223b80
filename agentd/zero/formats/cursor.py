"""One line of `.0c` read from left to right, and its words, written and read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeVar

from agentd.core.errors import GraphError
from agentd.core.graph import SIZE, Digest
from agentd.zero.hashes import stamp, utf8

_NUMBER = re.compile(r"[0-9](?:\.[0-9]{1,24})?(?:e-[0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z")
_WHOLE = re.compile(rf"[0-9a-f]{{{2 * SIZE}}}")
_Kind = TypeVar("_Kind", bound=Digest)
LEAST_DIGITS = 8  # of a short name

CURE = "have it written again by agentd, or correct the line"

_MARKS = re.compile("[\\\\:>,=\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN = re.compile(r"[^\\:>,=]*")
_BARE = re.compile(r"[^,]*")
_ESCAPE = re.compile(r"\\(?:([\\:>,=nrt])|u\{([0-9a-f]{1,6})\})")
_WRITTEN = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_READ = {"n": "\n", "r": "\r", "t": "\t"}


def escape(word: str) -> str:
    r"""The word as it stands in a line: a backslash before `\ : > , =`, control characters and ends of
    lines as `\n`, `\r`, `\t` or `\u{2028}`. Raises GraphError for half a surrogate pair.
    """
    if not word.isascii():
        utf8(word)
    return _MARKS.sub(_escape_mark, word)


def _escape_mark(found: re.Match[str]) -> str:
    mark = found[0]
    if mark in "\\:>,=":
        return "\\" + mark
    return _WRITTEN.get(mark) or f"\\u{{{ord(mark):x}}}"


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its column, from 1."""

    text: str
    column: int

    @property
    def is_ordinal(self) -> bool:
        """Whether it is an ordinal number, as ids go; else it is the beginning of a hash."""
        return len(self.text) < 8


class Cursor:
    """A place in a line. `number` is the line's, from 1."""

    __slots__ = ("_at", "_text", "number")

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self._text = text
        self._at = 0

    @property
    def column(self) -> int:
        """Where it stands, from 1."""
        return self._at + 1

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self._at == len(self._text)

    def take(self, mark: str) -> bool:
        """Pass the mark if it stands here; whether it did."""
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def expect(self, mark: str, where: str) -> None:
        """Pass the mark. Raises GraphError where another stands."""
        if not self.take(mark):
            raise self.fault(f"{where} stands no {mark!r}")

    def word(self) -> str:
        """What stands before the next mark, without its escapes. Raises GraphError for an escape that
        means nothing.
        """
        pieces = [self._run(_PLAIN)]
        while self._text.startswith("\\", self._at):
            found = _ESCAPE.match(self._text, self._at)
            if found is None:
                raise self.fault("the backslash escapes nothing")
            pieces.append(self._unescape(found))
            self._at = found.end()
            pieces.append(self._run(_PLAIN))
        return "".join(pieces)

    def placed(self, *, is_bare: bool = False) -> Word:
        """The next word with its column. A bare one ends at a comma only and has no escapes: a time,
        whose colons are no marks.
        """
        column = self.column
        return Word(self._run(_BARE) if is_bare else self.word(), column)

    def end(self) -> None:
        """Raises GraphError unless nothing is left."""
        if not self.is_done:
            raise self.fault(f"{self._text[self._at :][:20]!r} is too much here")

    def fault(self, why: str, column: int = 0) -> GraphError:
        """The error for this place, or for another column of the line."""
        return GraphError(why, cure=CURE, line=self.number, column=column or self.column)

    def _run(self, kind: re.Pattern[str]) -> str:
        found = kind.match(self._text, self._at)
        assert found
        self._at = found.end()
        return found[0]

    def _unescape(self, found: re.Match[str]) -> str:
        if found[1]:
            return _READ.get(found[1], found[1])
        code = int(found[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.fault(f"{found[0]} is no character")
        return chr(code)


def confidence_word(confidence: float) -> str:
    """The shortest number that reads as the same: `0.98`, `1`. Raises GraphError outside [0, 1]."""
    if not 0 <= confidence <= 1:
        raise GraphError(f"the confidence {confidence} is not between 0 and 1", cure=CURE)
    return repr(abs(float(confidence))).removesuffix(".0")


def read_confidence(word: Word, cursor: Cursor) -> float:
    """The number. Raises GraphError for anything but one in [0, 1]."""
    if _NUMBER.fullmatch(word.text) and (value := float(word.text)) <= 1:
        return value
    raise cursor.fault(f"{word.text[:20]!r} is no confidence between 0 and 1", word.column)


def time_word(at: datetime) -> str:
    """The time in UTC. Raises GraphError for a time without a zone, and for one without a year in UTC."""
    try:
        return stamp(at)
    except OverflowError:
        raise GraphError(f"the time {at.isoformat()} is none in UTC", cure=CURE) from None


def read_time(word: Word, cursor: Cursor) -> datetime:
    """The time, in UTC. Raises GraphError for anything but `time_word` writes."""
    if _TIME.fullmatch(word.text):
        try:
            return datetime.fromisoformat(word.text.removesuffix("Z")).replace(tzinfo=UTC)
        except ValueError:
            pass
    raise cursor.fault(f"{word.text[:40]!r} is no time such as 2026-02-18T09:30:00Z", word.column)


def read_whole(word: Word, kind: type[_Kind], cursor: Cursor) -> _Kind:
    """The hash with all its digits. Raises GraphError for anything else."""
    if not _WHOLE.fullmatch(word.text):
        raise cursor.fault(
            f"{word.text[:20]!r} is no hash of {2 * SIZE} hexadecimal digits", word.column
        )
    return kind.from_hex(word.text)


def names(hashes: Sequence[_Kind]) -> Mapping[_Kind, str]:
    """A name for each, in their order: as many of its hexadecimal digits as no other of these begins with,
    at least eight.
    """
    lengths = dict.fromkeys(hashes, LEAST_DIGITS)
    for one, other in pairwise(sorted(lengths)):
        needed = next(n for n in range(2 * SIZE) if one.hex[n] != other.hex[n]) + 1
        lengths[one] = max(lengths[one], needed)
        lengths[other] = max(lengths[other], needed)
    return {digest: digest.hex[:length] for digest, length in lengths.items()}
