"""The changes between two states of the graph: computed, applied elsewhere, and as text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Self, TypeVar

from msgspec import Struct

from agentd.core.errors import GraphError
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    Digest,
    EpisodeHash,
    Record,
    Relation,
)
from agentd.zero.formats.cursor import CURE, Cursor, confidence_word, read_whole, time_word
from agentd.zero.formats.reading import record_of
from agentd.zero.formats.records import canonical, verify
from agentd.zero.formats.seal import HEADER, open_text, seal_lines
from agentd.zero.formats.writing import body


class StateHash(Digest, frozen=True):
    """The hash of a state of the graph: of everything in it."""


class Checkpoint(Struct, frozen=True):
    """The hash of a state, and its numbers of concepts, contexts and relations."""

    hash: StateHash
    concepts: int
    contexts: int
    relations: int


class Delta(Struct, frozen=True):
    """The changes from the state `base` to the state `target`.

    `record` has everything that is new or changed, as it is in `target`, and the concepts and
    contexts that its relations name, changed or not, so that it can be read without the base.
    `episodes`, `contexts` and `concepts` were removed.
    """

    base: StateHash
    target: StateHash
    record: Record
    episodes: tuple[EpisodeHash, ...] = ()
    contexts: tuple[ContextHash, ...] = ()
    concepts: tuple[ConceptHash, ...] = ()


def checkpoint(state: Record) -> Checkpoint:
    """Return the state's hash and numbers. The hash is the sha256 of one line of JSON for each
    item, ordered by hash, with all its fields: confidences, aliases, times, denials and refs
    included. Raises GraphError when two different items have one hash, and for an invalid
    confidence or time.
    """
    state = canonical(state)
    seal = sha256()
    for line in _lines(state):
        seal.update(json.dumps(line).encode() + b"\n")
    counts = len(state.concepts), len(state.contexts), len(state.relations)
    return Checkpoint(StateHash(seal.digest()), *counts)


def _lines(state: Record) -> Iterable[Sequence[object]]:
    for concept in state.concepts:
        times = time_word(concept.created), time_word(concept.updated)
        sure = confidence_word(concept.confidence)
        yield ["C", concept.hash.hex, concept.label, sure, *times, concept.aliases]
    for context in state.contexts:
        names = context.source, context.scope, context.agent, context.session
        yield ["X", context.hash.hex, time_word(context.event_time), *names]
    for one in state.relations:
        hashes = one.episode, one.fact, one.context, one.subject, one.object
        said = one.predicate, confidence_word(one.confidence), time_word(one.created), one.denied
        yield ["R", *(digest.hex for digest in hashes), *said, one.refs]


def merge_records(records: Iterable[Record]) -> Record:
    """Merge the records, with the result of inserting each into an empty store. A concept of
    several records gets all the aliases, the highest confidence, the earliest and the latest time;
    of an episode the first one is kept. Raises GraphError when two different contexts have one
    hash.
    """
    concepts: dict[ConceptHash, Concept] = {}
    relations: dict[EpisodeHash, Relation] = {}
    contexts: list[ConceptContext] = []
    for record in records:
        for concept in record.concepts:
            concepts[concept.hash] = unite_concepts(concepts.get(concept.hash, concept), concept)
        for relation in record.relations:
            relations.setdefault(relation.episode, relation)
        contexts += record.contexts
    return canonical(Record(tuple(concepts.values()), tuple(contexts), tuple(relations.values())))


def unite_concepts(one: Concept, other: Concept) -> Concept:
    """Merge two versions of one concept."""
    return Concept(
        one.hash,
        one.label,
        max(one.confidence, other.confidence),
        min(one.created, other.created),
        max(one.updated, other.updated),
        tuple(sorted({*one.aliases, *other.aliases})),
    )


def diff(old: Record, new: Record) -> Delta:
    """Return the changes from the old state to the new one. Raises GraphError for states with a
    wrong hash in them.
    """
    old, new = canonical(old), canonical(new)
    verify(old)
    verify(new)
    before, after = _Things.of(old), _Things.of(new)
    relations = [one for key, one in after.relations.items() if before.relations.get(key) != one]
    concepts = {one.subject for one in relations} | {one.object for one in relations}
    concepts |= {key for key, one in after.concepts.items() if before.concepts.get(key) != one}
    contexts = {one.context for one in relations}
    contexts |= {key for key in after.contexts if key not in before.contexts}
    record = Record(
        tuple(one for key, one in after.concepts.items() if key in concepts),
        tuple(one for key, one in after.contexts.items() if key in contexts),
        tuple(relations),
    )
    return Delta(
        checkpoint(old).hash,
        checkpoint(new).hash,
        record,
        tuple(key for key in before.relations if key not in after.relations),
        tuple(key for key in before.contexts if key not in after.contexts),
        tuple(key for key in before.concepts if key not in after.concepts),
    )


def apply(state: Record, delta: Delta) -> Record:
    """Return the state after the changes. Raises GraphError if the state is not the delta's base,
    if a hash in the delta is wrong, or if the result is not the target.
    """
    if (here := checkpoint(state).hash) != delta.base:
        raise GraphError(
            f"the changes are for the state {delta.base.hex[:12]}, and here is {here.hex[:12]}",
            cure=f"ask for the changes since {here.hex}",
        )
    verify(delta.record)
    things = _Things.of(state)
    things.take_out(delta)
    things.put_in(delta.record)
    new = canonical(things.record())
    verify(new)
    if checkpoint(new).hash != delta.target:
        raise GraphError(
            f"the changes do not lead to the state {delta.target.hex[:12]} that they name",
            cure="have them sent again",
        )
    return new


class _Things(Struct, frozen=True):
    """The items of a state by hash, in the state's order."""

    concepts: dict[ConceptHash, Concept]
    contexts: dict[ContextHash, ConceptContext]
    relations: dict[EpisodeHash, Relation]

    @classmethod
    def of(cls, state: Record) -> Self:
        return cls(
            {one.hash: one for one in state.concepts},
            {one.hash: one for one in state.contexts},
            {one.episode: one for one in state.relations},
        )

    def take_out(self, delta: Delta) -> None:
        for episode in delta.episodes:
            self.relations.pop(episode, None)
        for context in delta.contexts:
            self.contexts.pop(context, None)
        for concept in delta.concepts:
            self.concepts.pop(concept, None)

    def put_in(self, record: Record) -> None:
        self.concepts.update((one.hash, one) for one in record.concepts)
        self.contexts.update((one.hash, one) for one in record.contexts)
        self.relations.update((one.episode, one) for one in record.relations)

    def record(self) -> Record:
        return Record(
            tuple(self.concepts.values()),
            tuple(self.contexts.values()),
            tuple(self.relations.values()),
        )


_Kind = TypeVar("_Kind", bound=Digest)


def write_delta(delta: Delta) -> str:
    """Return the delta as `.0c` text for `read_delta`: `D:base>target` with whole hashes, the lines
    of its record, `-R:`, `-X:` and `-C:` with the hashes of removed items, and a seal. Raises
    GraphError for a delta with a wrong hash in it.
    """
    return seal_lines(
        [
            HEADER,
            f"D:{delta.base.hex}>{delta.target.hex}",
            *body(delta.record),
            *(f"-R:{gone.hex}" for gone in delta.episodes),
            *(f"-X:{gone.hex}" for gone in delta.contexts),
            *(f"-C:{gone.hex}" for gone in delta.concepts),
        ]
    )


def as_json(delta: Delta) -> dict[str, Any]:
    """Return the delta as answers contain it. Raises GraphError as `write_delta` does."""
    return {
        "base": delta.base.hex,
        "state": delta.target.hex,
        "episodes": len(delta.record.relations),
        "gone": len(delta.episodes),
        "text": write_delta(delta),
    }


def read_delta(text: str) -> Delta:
    """Parse the text of a delta. Raises GraphError, with line and column, for a text that was cut
    off or changed, and as `agentd.zero.formats.reading.read` does.
    """
    lines = list(open_text(text, is_sealed=True))
    base, target = _states(lines.pop(0) if lines else None)
    episodes: list[EpisodeHash] = []
    contexts: list[ContextHash] = []
    concepts: list[ConceptHash] = []
    rest = []
    for line in lines:
        if line.take("-R:"):
            episodes.append(_removed_hash(line, EpisodeHash))
        elif line.take("-X:"):
            contexts.append(_removed_hash(line, ContextHash))
        elif line.take("-C:"):
            concepts.append(_removed_hash(line, ConceptHash))
        else:
            rest.append(line)
    record = record_of(rest)
    return Delta(base, target, record, tuple(episodes), tuple(contexts), tuple(concepts))


def _states(line: Cursor | None) -> tuple[StateHash, StateHash]:
    if line is None or not line.take("D:"):
        number = line.number if line else 2
        msg = "these are no changes: they begin with D: and two states"
        raise GraphError(msg, cure=CURE, line=number, column=1)
    base = read_whole(line.placed(), StateHash, line)
    line.expect(">", "between the two states")
    target = read_whole(line.placed(), StateHash, line)
    line.end()
    return base, target


def _removed_hash(line: Cursor, kind: type[_Kind]) -> _Kind:
    digest = read_whole(line.placed(), kind, line)
    line.end()
    return digest
