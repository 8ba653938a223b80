"""Parses `.0c` into records; every line is checked and every hash computed again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    Digest,
    Record,
    Relation,
)
from agentd.zero.formats.cursor import Cursor, Word, read_confidence, read_time
from agentd.zero.formats.records import canonical, strongest_saying
from agentd.zero.formats.seal import open_text
from agentd.zero.hashes import concept_hash, context_hash, episode_hash, fact_hash

_ID = re.compile(r"[0-9a-f]{8,64}|[1-9][0-9]{0,6}")
_TIMES = frozenset({"t", "u"})
Fields = Mapping[str, Sequence[Word]]


def read(text: str, *, is_sealed: bool = True) -> Record:
    """Return the record in the text, ordered by hash.

    A text from another machine has a seal and is refused without one; a text written by hand, or
    with ordinal ids, has none. Raises GraphError, with line and column, for what `write` never
    writes: unknown lines and fields, undefined or ambiguous ids, and a hash that is not that of the
    named item.
    """
    return record_of(open_text(text, is_sealed=is_sealed))


def record_of(cursors: Iterable[Cursor]) -> Record:
    """Return the record of the lines of a body. Raises GraphError as `read` does."""
    reader = _Reader()
    for cursor in cursors:
        reader.add(cursor)
    return reader.record()


class _Reader:
    """Collects lines in any order. A line without a time has that of the context above it, or of
    the first context if none is above. A concept without a confidence has that of its surest fact.
    """

    def __init__(self) -> None:
        self._contexts: dict[str, ConceptContext] = {}
        self._above: ConceptContext | None = None
        self._named: list[tuple[NamedLine, ConceptContext | None]] = []
        self._said: list[tuple[RelationLine, ConceptContext | None]] = []
        self._seen: set[Digest] = set()

    def add(self, cursor: Cursor) -> None:
        """Add one line. Raises GraphError for a line of unknown kind or form."""
        if cursor.take("C:"):
            self._named.append((concept_line(cursor), self._above))
        elif cursor.take("R:"):
            self._said.append((relation_line(cursor), self._above))
        elif cursor.take("X:"):
            line = context_line(cursor)
            self._above = _context(line)
            self._once(line.cursor, self._above.hash, "the context")
            _claim(line, self._contexts)
            self._contexts[line.id.text] = self._above
        else:
            raise cursor.fault("a line begins with C:, X: or R:")

    def record(self) -> Record:
        """Return the record of all lines that were added. Raises GraphError."""
        first = next(iter(self._contexts.values()), None)
        concepts: dict[str, Concept] = {}
        for line, above in self._named:
            concept = _concept(line, above or first)
            self._once(line.cursor, concept.hash, "the concept")
            _claim(line, concepts)
            concepts[line.id.text] = concept
        relations = []
        for said, above in self._said:
            relation = _relation(said, above or first, concepts)
            self._once(said.cursor, relation.episode, "the fact, in this context,")
            relations.append(relation)
        strongest = strongest_saying(relations)
        told = (_with_confidence(line, strongest, concepts) for line, _ in self._named)
        return canonical(Record(tuple(told), tuple(self._contexts.values()), tuple(relations)))

    def _once(self, cursor: Cursor, digest: Digest, what: str) -> None:
        if digest in self._seen:
            raise cursor.fault(f"{what} stands here twice", 1)
        self._seen.add(digest)


def _claim(line: NamedLine, known: Collection[str]) -> None:
    if line.id.text in known:
        raise line.cursor.fault(f"the id {line.id.text} stands for two things", line.id.column)


def _context(line: NamedLine) -> ConceptContext:
    time = read_time(line.fields["t"][0], line.cursor)
    source, scope, agent, session = (
        _text(line.fields, key) for key in ("src", "scope", "agent", "session")
    )
    digest = context_hash(time, source, scope, agent, session)
    _check(line, digest, "the context")
    return ConceptContext(digest, time, source, scope, agent, session)


def _concept(line: NamedLine, above: ConceptContext | None) -> Concept:
    digest = concept_hash(line.label)
    _check(line, digest, repr(line.label[:40]))
    created = _time(line.cursor, line.fields, "t", above.event_time if above else None)
    return Concept(
        digest,
        line.label,
        1.0,
        created,
        _time(line.cursor, line.fields, "u", created),
        tuple(word.text for word in line.fields.get("a", ())),
    )


def _relation(
    line: RelationLine, above: ConceptContext | None, concepts: Mapping[str, Concept]
) -> Relation:
    if above is None:
        raise line.cursor.fault("the fact stands in no context: there is no line X:", 1)
    subject, object_ = (
        _concept_named(line, line.subject, concepts),
        _concept_named(line, line.object, concepts),
    )
    fact = fact_hash(subject.label, line.predicate, object_.label)
    return Relation(
        fact,
        episode_hash(fact, above.hash),
        above.hash,
        subject.hash,
        line.predicate,
        object_.hash,
        read_confidence(line.confidence, line.cursor),
        _time(line.cursor, line.fields, "t", above.event_time),
        denied="d" in line.fields,
        refs=tuple(word.text for word in line.fields.get("r", ())),
    )


def _concept_named(line: RelationLine, name: Word, concepts: Mapping[str, Concept]) -> Concept:
    if name.text not in concepts:
        raise line.cursor.fault(f"no line C: has the id {name.text}", name.column)
    return concepts[name.text]


def _check(line: NamedLine, digest: Digest, what: str) -> None:
    """Check that the line's id is the beginning of the hash, unless it is an ordinal number."""
    if not line.id.is_ordinal and not digest.hex.startswith(line.id.text):
        msg = f"{line.id.text} is not the hash of {what}: that is {digest.hex}"
        raise line.cursor.fault(msg, line.id.column)


def _with_confidence(
    line: NamedLine, strongest: Mapping[ConceptHash, float], concepts: Mapping[str, Concept]
) -> Concept:
    """Return the concept with the confidence in its line or, without one, that of its
    surest fact.
    """
    concept = concepts[line.id.text]
    if words := line.fields.get("c"):
        return replace(concept, confidence=read_confidence(words[0], line.cursor))
    return replace(concept, confidence=strongest.get(concept.hash, 1.0))


def _time(cursor: Cursor, fields: Fields, key: str, usual: datetime | None) -> datetime:
    words = fields.get(key)
    if words:
        return read_time(words[0], cursor)
    if usual is None:
        raise cursor.fault(f"there is no {key}=, and no context has a time for it")
    return usual


def _text(fields: Fields, key: str) -> str:
    return fields[key][0].text if key in fields else ""


class NamedLine(Struct, frozen=True):
    """The parsed line of a concept or a context. A context has no `label`."""

    cursor: Cursor
    id: Word
    label: str
    fields: Fields


class RelationLine(Struct, frozen=True):
    """The parsed line of one episode of a fact."""

    cursor: Cursor
    subject: Word
    predicate: str
    object: Word
    confidence: Word
    fields: Fields


def concept_line(cursor: Cursor) -> NamedLine:
    """Parse a line after `C:`: `id:label`, and `:c=…,t=…,u=…,a=…` where needed. Raises
    GraphError.
    """
    name = _id(cursor)
    cursor.expect(":", "before the label (level L0 has none: ask for L2)")
    label = cursor.word()
    return NamedLine(cursor, name, label, _rest(cursor, once="ctu", repeated="a"))


def context_line(cursor: Cursor) -> NamedLine:
    """Parse a line after `X:`: `id:t=…,src=…,scope=…,agent=…,session=…`. Raises GraphError."""
    name = _id(cursor)
    fields = _rest(cursor, once=("t", "src", "scope", "agent", "session"))
    for key in ("t", "src", "scope"):
        if key not in fields:
            raise cursor.fault(f"the context has no {key}=", name.column)
    return NamedLine(cursor, name, "", fields)


def relation_line(cursor: Cursor) -> RelationLine:
    """Parse a line after `R:`: `subject>predicate>object:confidence`, and `:t=…,d=1,r=…` where
    needed. Raises GraphError.
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
    """Parse the fields after the next colon, up to the line's end; {} if the line ends here."""
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
