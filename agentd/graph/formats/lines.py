"""The lines of `.0c`, taken apart but not yet believed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agentd.graph.formats.cursor import Cursor, Word

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
