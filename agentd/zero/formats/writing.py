"""Records as `.0c`: one line for each concept, context and fact, and nothing said that follows; and with less
than all they say, in three levels of detail and as lines for a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from itertools import chain

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
    """The record as text that `read` gives back, in the order of its hashes, times in UTC, with a seal at
    its end. Raises GraphError for a record that is not what its hashes say.
    """
    return seal_lines([HEADER, *body(record)])


def body(record: Record) -> Sequence[str]:
    """The lines between header and seal. Raises GraphError as `write` does."""
    record = canonical(record)
    verify(record)
    groups = _groups(record)
    concepts = [concept.hash for group in groups for concept in group.concepts]
    contexts = [context.hash for context in record.contexts]
    strongest = strongest_saying(record.relations)
    pen = _Pen(names(concepts), names(contexts), strongest)
    return [line for group in groups for line in pen.group(group)]


@dataclass(frozen=True, slots=True)
class _Group:
    """A context with what was said in it, and the concepts that are as old."""

    context: ConceptContext | None
    concepts: Sequence[Concept]
    relations: Sequence[Relation]


def _groups(record: Record) -> Sequence[_Group]:
    """Concepts without a context that is as old stand in the first."""
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


@dataclass(frozen=True, slots=True)
class _Pen:
    """Writes lines with these names, without the confidences that are those of the surest facts."""

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


_SURE = 0.995  # from here on a confidence is 1.00 in two digits, and goes without saying


class WritingLevel(IntEnum):
    """How much is said: SKELETON (L0) which concepts there are, STRUCTURE (L1) their labels and what
    relates them, FULL (L2) everything.
    """

    SKELETON = 0
    STRUCTURE = 1
    FULL = 2


def at_level(record: Record, level: WritingLevel) -> str:
    """The record at a level. L2 is `write`; L0 and L1 are for looking at and are not read back, and L1
    says a fact once, in however many contexts it was said. Raises GraphError as `write` does.
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
    """One line for each subject, the subjects and the facts of each in the order they come in:
    `- agent needs memory (0.98); uses python`. Of the confidence two digits are said, and nothing where
    they are 1.00.
    """
    lines: dict[ConceptHash, list[str]] = {}
    for edge in edges:
        lines.setdefault(edge.subject, []).append(_fact_words(edge, labels))
    return "".join(f"- {_line(labels[one])} {'; '.join(said)}\n" for one, said in lines.items())


def _fact_words(edge: Edge, labels: Mapping[ConceptHash, str]) -> str:
    said = f"{_line(edge.predicate)} {_line(labels[edge.object])}"
    return said if edge.confidence >= _SURE else f"{said} ({edge.confidence:.2f})"


def _line(text: str) -> str:
    """Normal labels have no line breaks; one that came in by another way must not begin a line."""
    return " ".join(text.split())
