"""Checks the hashes in records, and puts records into the one order in which they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from agentd.core.errors import GraphError
from agentd.core.graph import Concept, ConceptContext, ConceptHash, Digest, Record, Relation
from agentd.zero.formats.cursor import confidence_word, time_word
from agentd.zero.hashes import concept_hash, context_hash, episode_hash, fact_hash

_CURE = "compile it again from its statements"
_Thing = TypeVar("_Thing")


def canonical(record: Record) -> Record:
    """Return the record with all items ordered by hash, each once. Raises GraphError when two
    different items have one hash.
    """
    return Record(
        _once((concept.hash, concept) for concept in record.concepts),
        _once((context.hash, context) for context in record.contexts),
        _once((relation.episode, relation) for relation in record.relations),
    )


def verify(record: Record) -> None:
    """Raise GraphError for the first item that has a wrong hash, names an item that is not in the
    record, or has an invalid confidence or time.
    """
    labels = {concept.hash: concept.label for concept in record.concepts}
    contexts = {context.hash for context in record.contexts}
    for concept in record.concepts:
        _same(concept.hash, concept_hash(concept.label), f"the concept {concept.label[:40]!r}")
        confidence_word(concept.confidence)
        time_word(concept.created)
        time_word(concept.updated)
    for context in record.contexts:
        time_word(context.event_time)
        _same(context.hash, hash_of(context), f"the context of {context.event_time.isoformat()}")
    for relation in record.relations:
        if relation.context not in contexts:
            raise _missing(relation, "context", relation.context)
        _verify_fact(relation, labels)
        confidence_word(relation.confidence)
        time_word(relation.created)


def strongest_saying(relations: Iterable[Relation]) -> Mapping[ConceptHash, float]:
    """Return for each concept the highest confidence of the relations that name it."""
    strongest: dict[ConceptHash, float] = {}
    for relation in relations:
        for end in (relation.subject, relation.object):
            strongest[end] = max(strongest.get(end, 0.0), relation.confidence)
    return strongest


def concepts_told(
    concepts: Mapping[ConceptHash, Concept], relations: Iterable[Relation]
) -> tuple[Concept, ...]:
    """Return the concepts of these episodes as the episodes alone give them: confidence and times
    are those of the episodes, and aliases are left out, since their source is unknown.
    """
    said: dict[ConceptHash, list[Relation]] = {}
    for relation in relations:
        for end in {relation.subject, relation.object}:
            said.setdefault(end, []).append(relation)
    return tuple(
        Concept(
            name,
            concepts[name].label,
            max(one.confidence for one in some),
            min(one.created for one in some),
            max(one.created for one in some),
        )
        for name, some in said.items()
    )


def hash_of(context: ConceptContext) -> Digest:
    """Return the hash that belongs to the context's fields."""
    return context_hash(
        context.event_time, context.source, context.scope, context.agent, context.session
    )


def _once(named: Iterable[tuple[Digest, _Thing]]) -> tuple[_Thing, ...]:
    found: dict[Digest, _Thing] = {}
    for digest, thing in named:
        if found.setdefault(digest, thing) != thing:
            raise GraphError(f"two things that differ have the hash {digest.hex}", cure=_CURE)
    return tuple(found[digest] for digest in sorted(found, key=lambda one: one.value))


def _verify_fact(relation: Relation, labels: dict[ConceptHash, str]) -> None:
    for end in (relation.subject, relation.object):
        if end not in labels:
            raise _missing(relation, "concept", end)
    subject, object_ = labels[relation.subject], labels[relation.object]
    what = f"the fact {subject[:40]!r} {relation.predicate[:40]!r} {object_[:40]!r}"
    _same(relation.fact, fact_hash(subject, relation.predicate, object_), what)
    _same(relation.episode, episode_hash(relation.fact, relation.context), f"an episode of {what}")


def _same(given: Digest, right: Digest, what: str) -> None:
    if given != right:
        raise GraphError(f"{what} has the hash {given.hex}, but its own is {right.hex}", cure=_CURE)


def _missing(relation: Relation, what: str, digest: Digest) -> GraphError:
    return GraphError(
        (
            f"a fact with {relation.predicate[:40]!r} names the {what} "
            f"{digest.hex}, which is not there"
        ),
        cure=_CURE,
    )
