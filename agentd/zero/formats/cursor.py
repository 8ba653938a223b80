"""One line of `.0c` read from left to right, and how words are written that hold its marks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agentd.core.errors import GraphError
from agentd.zero.naming import utf8

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
    return _MARKS.sub(_escaped, word)


def _escaped(found: re.Match[str]) -> str:
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
            pieces.append(self._meant(found))
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

    def _meant(self, found: re.Match[str]) -> str:
        if found[1]:
            return _READ.get(found[1], found[1])
        code = int(found[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.fault(f"{found[0]} is no character")
        return chr(code)


# The lines of `.0c`, taken apart but not yet believed.

_ID = re.compile(r"[0-9a-f]{8,64}|[1-9][0-9]{0,6}")
_TIMES = frozenset({"t", "u"})


Fields = Mapping[str, Sequence[Word]]


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A concept or a context. A concept's `label` comes before its fields; a context has none."""

    cursor: Cursor
    id: Word
    label: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class RelationLine:
    """A fact as it was said once."""

    cursor: Cursor
    subject: Word
    predicate: str
    object: Word
    confidence: Word
    fields: Fields


def concept_line(cursor: Cursor) -> NamedLine:
    """What stands behind `C:`: `id:label`, and `:c=…,t=…,u=…,a=…` where needed. Raises GraphError."""
    name = _id(cursor)
    cursor.expect(":", "before the label (level L0 has none: ask for L2)")
    label = cursor.word()
    return NamedLine(cursor, name, label, _rest(cursor, once="ctu", repeated="a"))


def context_line(cursor: Cursor) -> NamedLine:
    """What stands behind `X:`: `id:t=…,src=…,scope=…,agent=…,session=…`. Raises GraphError."""
    name = _id(cursor)
    fields = _rest(cursor, once=("t", "src", "scope", "agent", "session"))
    for key in ("t", "src", "scope"):
        if key not in fields:
            raise cursor.fault(f"the context has no {key}=", name.column)
    return NamedLine(cursor, name, "", fields)


def relation_line(cursor: Cursor) -> RelationLine:
    """What stands behind `R:`: `subject>predicate>object:confidence`, and `:t=…,d=1,r=…` where needed.
    Raises GraphError.
    """
    subject = _id(cursor)
    cursor.expect(">", "before the predicate")
    predicate = cursor.word()
    cursor.expect(">", "before the object")
    object_ = _id(cursor)
    cursor.expect(":", "before the confidence (level L1 has none: ask for L2)")
    confidence = cursor.placed()
    fields = _rest(cursor, once="td", repeated="r")
    if "d" in fields and fields["d"][0].text != "1":
        raise cursor.fault("d= is 1 or not there", fields["d"][0].column)
    return RelationLine(cursor, subject, predicate, object_, confidence, fields)


def _id(cursor: Cursor) -> Word:
    word = cursor.placed()
    if not _ID.fullmatch(word.text):
        msg = f"{word.text[:20]!r} is no id: an ordinal number, or 8 to 64 hexadecimal digits"
        raise cursor.fault(msg, word.column)
    return word


def _rest(cursor: Cursor, *, once: Collection[str], repeated: Collection[str] = "") -> Fields:
    """The fields behind the next colon, up to the line's end; none if it ends here."""
    found: dict[str, list[Word]] = {}
    known = (*once, *repeated)
    if cursor.is_done:
        return found
    cursor.expect(":", "before the fields")
    while True:
        key = cursor.placed()
        if key.text not in known:
            msg = f"{key.text[:20]!r} is no field here: known are {', '.join(known)}"
            raise cursor.fault(msg, key.column)
        if key.text in found and key.text not in repeated:
            raise cursor.fault(f"the field {key.text} stands here twice", key.column)
        cursor.expect("=", f"behind the field {key.text}")
        found.setdefault(key.text, []).append(cursor.placed(is_bare=key.text in _TIMES))
        if not cursor.take(","):
            break
    cursor.end()
    return found
