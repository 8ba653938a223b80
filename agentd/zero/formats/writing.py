"""Writes records as `.0c` text, at three levels of detail, and as lines for a prompt.

Each concept, context and fact has one line, without values that a reader can infer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from itertools import chain

from msgspec import Struct

from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    Edge,
    Record,
    Relation,
)
from agentd.zero.formats.cursor import confidence_word, escape, names, time_word
from agentd.zero.formats.records import canonical, strongest_saying, verify
from agentd.zero.formats.seal import HEADER, plain, seal_lines


def write(record: Record) -> str:
    """Return the record as text for `read`: ordered by hash, with times in UTC and a seal. Raises
    GraphError for a record with a wrong hash in it.
    """
    return seal_lines([HEADER, *body(record)])


def body(record: Record) -> Sequence[str]:
    """Return the lines between header and seal. Raises GraphError as `write` does."""
    record = canonical(record)
    verify(record)
    groups = _groups(record)
    concepts = [concept.hash for group in groups for concept in group.concepts]
    contexts = [context.hash for context in record.contexts]
    strongest = strongest_saying(record.relations)
    pen = _Pen(names(concepts), names(contexts), strongest)
    return [line for group in groups for line in pen.group(group)]


class _Group(Struct, frozen=True):
    """A context, its relations, and the concepts created at its time."""

    context: ConceptContext | None
    concepts: Sequence[Concept]
    relations: Sequence[Relation]


def _groups(record: Record) -> Sequence[_Group]:
    """Group the record by context. Concepts that no context's time fits are in the first group."""
    if not record.contexts:
        return [_Group(None, record.concepts, ())]
    by_time: dict[datetime, ContextHash] = {}
    for context in record.contexts:
        by_time.setdefault(context.event_time, context.hash)
    first = record.contexts[0].hash
    concepts: dict[ContextHash, list[Concept]] = {one.hash: [] for one in record.contexts}
    relations: dict[ContextHash, list[Relation]] = {one.hash: [] for one in record.contexts}
    for concept in record.concepts:
        concepts[by_time.get(concept.created, first)].append(concept)
    for relation in record.relations:
        relations[relation.context].append(relation)
    return [_Group(one, concepts[one.hash], relations[one.hash]) for one in record.contexts]


class _Pen(Struct, frozen=True):
    """Writes lines with these short names, and leaves out confidences that equal those of the
    surest facts.
    """

    concepts: Mapping[ConceptHash, str]
    contexts: Mapping[ContextHash, str]
    strongest: Mapping[ConceptHash, float]

    def group(self, group: _Group) -> Iterator[str]:
        time = group.context.event_time if group.context else None
        if group.context:
            yield self._context(group.context)
        for concept in group.concepts:
            yield self._concept(concept, time)
        for relation in group.relations:
            yield self._relation(relation, time)

    def _context(self, context: ConceptContext) -> str:
        fields = [
            f"t={time_word(context.event_time)}",
            f"src={escape(context.source)}",
            f"scope={escape(context.scope)}",
        ]
        if context.agent:
            fields.append(f"agent={escape(context.agent)}")
        if context.session:
            fields.append(f"session={escape(context.session)}")
        return f"X:{self.contexts[context.hash]}:{','.join(fields)}"

    def _concept(self, concept: Concept, time: datetime | None) -> str:
        fields = []
        if concept.confidence != self.strongest.get(concept.hash, 1.0):
            fields.append(f"c={confidence_word(concept.confidence)}")
        if concept.created != time:
            fields.append(f"t={time_word(concept.created)}")
        if concept.updated != concept.created:
            fields.append(f"u={time_word(concept.updated)}")
        fields += [f"a={escape(alias)}" for alias in concept.aliases]
        line = f"C:{self.concepts[concept.hash]}:{escape(concept.label)}"
        return f"{line}:{','.join(fields)}" if fields else line

    def _relation(self, relation: Relation, time: datetime | None) -> str:
        fields = [f"t={time_word(relation.created)}"] if relation.created != time else []
        fields += ["d=1"] if relation.denied else []
        fields += [f"r={escape(ref)}" for ref in relation.refs]
        ends = self.concepts[relation.subject], self.concepts[relation.object]
        said = f"{ends[0]}>{escape(relation.predicate)}>{ends[1]}"
        line = f"R:{said}:{confidence_word(relation.confidence)}"
        return f"{line}:{','.join(fields)}" if fields else line


_SURE = 0.995  # confidences from here on round to 1.00 and are left out


class WritingLevel(IntEnum):
    """The level of detail: SKELETON (L0) has the concepts' ids, STRUCTURE (L1) also their labels
    and relations, FULL (L2) everything.
    """

    SKELETON = 0
    STRUCTURE = 1
    FULL = 2


def at_level(record: Record, level: WritingLevel) -> str:
    """Return the record as text of a level. L2 is `write`. L0 and L1 are for people and cannot be
    read back, and in L1 a fact occurs once, whatever its contexts. Raises GraphError as `write`
    does.
    """
    if level is WritingLevel.FULL:
        return write(record)
    record = canonical(record)
    verify(record)
    name = names([concept.hash for concept in record.concepts])
    if level is WritingLevel.SKELETON:
        return plain(chain([HEADER], (f"C:{name[one.hash]}" for one in record.concepts)))
    labels = [f"C:{name[one.hash]}:{escape(one.label)}" for one in record.concepts]
    facts = dict.fromkeys(
        f"R:{name[one.subject]}>{escape(one.predicate)}>{name[one.object]}"
        for one in record.relations
    )
    return plain([HEADER, *labels, *facts])


def group_by_subject(edges: Iterable[Edge], labels: Mapping[ConceptHash, str]) -> str:
    """Return one line for each subject: `- agent needs memory (0.98); uses python`. Subjects, and
    the facts of each, keep their order. Confidences have two digits and are left out where these
    are 1.00.
    """
    lines: dict[ConceptHash, list[str]] = {}
    for edge in edges:
        lines.setdefault(edge.subject, []).append(_fact_words(edge, labels))
    return "".join(f"- {_line(labels[one])} {'; '.join(said)}\n" for one, said in lines.items())


def _fact_words(edge: Edge, labels: Mapping[ConceptHash, str]) -> str:
    said = f"{_line(edge.predicate)} {_line(labels[edge.object])}"
    return said if edge.confidence >= _SURE else f"{said} ({edge.confidence:.2f})"


def _line(text: str) -> str:
    """Return the text as one line. Normalised labels have no line breaks, but a label from another
    source must not begin a new line.
    """
    return " ".join(text.split())
