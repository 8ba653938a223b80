"""A reader of one line of `.0c`, and the words of such lines, written and parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct

from agentd.core.errors import GraphError
from agentd.core.graph import SIZE, Digest
from agentd.zero.hashes import stamp, utf8

_NUMBER = re.compile(r"[0-9](?:\.[0-9]{1,24})?(?:e-[0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z")
_WHOLE = re.compile(rf"[0-9a-f]{{{2 * SIZE}}}")
_Kind = TypeVar("_Kind", bound=Digest)
LEAST_DIGITS = 8  # of a shortened hash

CURE = "have it written again by agentd, or correct the line"

_MARKS = re.compile("[\\\\:>,=\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN = re.compile(r"[^\\:>,=]*")
_BARE = re.compile(r"[^,]*")
_ESCAPE = re.compile(r"\\(?:([\\:>,=nrt])|u\{([0-9a-f]{1,6})\})")
_WRITTEN = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_READ = {"n": "\n", "r": "\r", "t": "\t"}


def escape(word: str) -> str:
    r"""Escape the word for a line: a backslash before `\ : > , =`, and control characters and line
    ends as `\n`, `\r`, `\t` or `\u{2028}`. Raises GraphError for a lone surrogate.
    """
    if not word.isascii():
        utf8(word)
    return _MARKS.sub(_escape_mark, word)


def _escape_mark(found: re.Match[str]) -> str:
    mark = found[0]
    if mark in "\\:>,=":
        return "\\" + mark
    return _WRITTEN.get(mark) or f"\\u{{{ord(mark):x}}}"


class Word(Struct, frozen=True):
    """A word and its column, from 1."""

    text: str
    column: int

    @property
    def is_ordinal(self) -> bool:
        """Whether an id is an ordinal number; otherwise it is the beginning of a hash."""
        return len(self.text) < 8


class Cursor:
    """A position in a line. `number` is the line's number, from 1."""

    __slots__ = ("_at", "_text", "number")

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self._text = text
        self._at = 0

    @property
    def column(self) -> int:
        """The column of the position, from 1."""
        return self._at + 1

    @property
    def is_done(self) -> bool:
        """Whether the position is the line's end."""
        return self._at == len(self._text)

    def take(self, mark: str) -> bool:
        """Step over `mark` if it is next, and return whether it was."""
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def expect(self, mark: str, where: str) -> None:
        """Step over `mark`. Raises GraphError if it is not next."""
        if not self.take(mark):
            raise self.fault(f"{where} stands no {mark!r}")

    def word(self) -> str:
        """Return the text up to the next mark, unescaped. Raises GraphError for an
        invalid escape.
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
        """Return the next word with its column. A bare word ends only at a comma and has no
        escapes: a time contains colons.
        """
        column = self.column
        return Word(self._run(_BARE) if is_bare else self.word(), column)

    def end(self) -> None:
        """Raise GraphError unless the position is the line's end."""
        if not self.is_done:
            raise self.fault(f"{self._text[self._at :][:20]!r} is too much here")

    def fault(self, why: str, column: int = 0) -> GraphError:
        """Return an error for this position, or for another column of the line."""
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
    """Return the shortest text that parses to the same number: `0.98`, `1`. Raises GraphError
    outside [0, 1].
    """
    if not 0 <= confidence <= 1:
        raise GraphError(f"the confidence {confidence} is not between 0 and 1", cure=CURE)
    return repr(abs(float(confidence))).removesuffix(".0")


def read_confidence(word: Word, cursor: Cursor) -> float:
    """Parse a confidence. Raises GraphError for anything but a number in [0, 1]."""
    if _NUMBER.fullmatch(word.text) and (value := float(word.text)) <= 1:
        return value
    raise cursor.fault(f"{word.text[:20]!r} is no confidence between 0 and 1", word.column)


def time_word(at: datetime) -> str:
    """Return the time as text in UTC. Raises GraphError for a time without a zone, or outside the
    years 1 to 9999 in UTC.
    """
    try:
        return stamp(at)
    except OverflowError:
        raise GraphError(f"the time {at.isoformat()} is none in UTC", cure=CURE) from None


def read_time(word: Word, cursor: Cursor) -> datetime:
    """Parse a time in UTC. Raises GraphError for any form that `time_word` does not write."""
    if _TIME.fullmatch(word.text):
        try:
            return datetime.fromisoformat(word.text.removesuffix("Z")).replace(tzinfo=UTC)
        except ValueError:
            pass
    raise cursor.fault(f"{word.text[:40]!r} is no time such as 2026-02-18T09:30:00Z", word.column)


def read_whole(word: Word, kind: type[_Kind], cursor: Cursor) -> _Kind:
    """Parse a hash of full length. Raises GraphError for anything else."""
    if not _WHOLE.fullmatch(word.text):
        raise cursor.fault(
            f"{word.text[:20]!r} is no hash of {2 * SIZE} hexadecimal digits", word.column
        )
    return kind.from_hex(word.text)


def names(hashes: Sequence[_Kind]) -> Mapping[_Kind, str]:
    """Return a short name for each hash, in order: its first hexadecimal digits, at least eight,
    and as many as no other of these hashes begins with.
    """
    lengths = dict.fromkeys(hashes, LEAST_DIGITS)
    for one, other in pairwise(sorted(lengths)):
        needed = next(n for n in range(2 * SIZE) if one.hex[n] != other.hex[n]) + 1
        lengths[one] = max(lengths[one], needed)
        lengths[other] = max(lengths[other], needed)
    return {digest: digest.hex[:length] for digest, length in lengths.items()}
