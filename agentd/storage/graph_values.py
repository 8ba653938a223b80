"""Values of the concept graph as columns, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import log2
from typing import Any

from agentd.domain.belief import (
    CONSOLIDATION,
    HALF_LIFE,
    LEAST,
    STANDING,
    Trace,
    belief,
    faded,
    read_evidence,
)
from agentd.domain.concept import (
    Concept,
    ConceptHash,
    Context,
    ContextHash,
    Edge,
    EpisodeHash,
    FactHash,
    Record,
    Relation,
)
from agentd.storage.codec import dumps

SECOND = 1_000_000  # microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_HALF_LIFE = HALF_LIFE // _TICK
_LONG_AGO = -(1 << 62)
_LONE = b""  # the episode of a concept that stands by itself

Values = tuple[object, ...]


def ticks(at: datetime) -> int:
    """An aware time in microseconds since 1970."""
    return (at - _EPOCH) // _TICK


def moment(microseconds: int) -> datetime:
    """The time that `ticks` gave, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def end_of(confidence: float, since: int) -> int:
    """When it will have faded below 0.01, to the microsecond or so; long ago if it always was."""
    if confidence < LEAST:
        return _LONG_AGO
    return since + int(_HALF_LIFE * log2(confidence / LEAST))


def mentions(record: Record) -> Iterator[tuple[Concept, bytes]]:
    """The record's concepts, each with every episode that it is an end of, or with none."""
    concepts = {concept.hash: concept for concept in record.concepts}
    for relation in record.relations:
        for end in {relation.subject, relation.object}:
            yield concepts[end], relation.episode.value
    related = {end for r in record.relations for end in (r.subject, r.object)}
    for concept in record.concepts:
        if concept.hash not in related:
            yield concept, _LONE


def mention_row(concept: Concept, episode: bytes) -> Values:
    """A row of graph_mentions."""
    created, updated = ticks(concept.created), ticks(concept.updated)
    return concept.hash.value, episode, concept.confidence, created, updated


def context_row(context: Context) -> Values:
    """A row of graph_contexts."""
    said = ticks(context.event_time)
    where = (context.source, context.scope, context.agent, context.session)
    return context.hash.value, said, *where


def episode_row(relation: Relation, context: Context) -> Values:
    """A row of graph_episodes, but for the column `promoted`."""
    said = ticks(context.event_time)
    stands = context.source in STANDING
    return (
        relation.fact.value,
        relation.episode.value,
        relation.context.value,
        relation.confidence,
        ticks(relation.created),
        relation.denied,
        dumps(relation.refs),
        said,
        context.source,
        context.scope,
        said,
        None if stands else end_of(relation.confidence, said),
        max(1, len(relation.refs)) if context.source == CONSOLIDATION else 1,
    )


def promoted_rows(relation: Relation, context: Context) -> list[tuple[bytes, bytes]]:
    """The rows of graph_promoted that the relation stands for: none unless it is a promotion."""
    if context.source != CONSOLIDATION:
        return []
    return [(read_evidence(ref)[0].value, relation.episode.value) for ref in relation.refs]


def concept_of(row: Sequence[Any], aliases: Iterable[str]) -> Concept:
    """A concept from its row."""
    name, label, confidence, created, updated = row
    times = moment(created), moment(updated)
    return Concept(ConceptHash(name), label, confidence, *times, tuple(sorted(set(aliases))))


def context_of(row: Sequence[Any]) -> Context:
    """A context from its row."""
    return Context(ContextHash(row[0]), moment(row[1]), *row[2:])


def relation_of(row: Sequence[Any]) -> Relation:
    """An episode from the columns that RELATION names."""
    fact, episode, context, subject, predicate, thing, confidence, created, denied, refs = row
    return Relation(
        FactHash(fact),
        EpisodeHash(episode),
        ContextHash(context),
        ConceptHash(subject),
        predicate,
        ConceptHash(thing),
        confidence,
        moment(created),
        denied=bool(denied),
        refs=tuple(json.loads(refs)),
    )


RELATION = (
    "e.fact, e.hash, e.context, f.subject, f.predicate, f.object, e.confidence, e.created, e.denied,"
    " e.refs"
)
TRACE = f"{RELATION}, e.source, e.scope, e.said, e.since, e.promoted"
_OF_RELATION = 10


def trace_of(row: Sequence[Any]) -> Trace:
    """An episode with its worth from the columns that TRACE names."""
    source, scope, said, since, promoted = row[_OF_RELATION:]
    times = moment(said), moment(since)
    return Trace(relation_of(row[:_OF_RELATION]), source, scope, *times, is_promoted=bool(promoted))


SAID = (
    "f.hash, f.subject, f.predicate, f.object, e.confidence, e.denied, e.said, e.since, e.until,"
    " e.observed, e.promoted, e.scope"
)
_FIRST = 4  # columns of SAID that are the fact's


def edge_of(
    rows: Sequence[Sequence[Any]], now: int | None, names: dict[bytes, ConceptHash]
) -> Edge:
    """A fact from its episodes, by the columns that SAID names; `names` are hashes that were made
    before, and grow.
    """
    fact, subject, predicate, thing = rows[0][:_FIRST]
    worth: tuple[list[float], list[float]] = ([], [])
    newest, count = rows[0][6], 0
    for _, _, _, _, confidence, denied, said, since, until, observed, is_promoted, _ in rows:
        count += observed - is_promoted  # its promotion counts it
        newest = max(newest, said)
        if not is_promoted:
            fades = now is not None and until is not None
            left = faded(confidence, (now - since) / SECOND) if fades else confidence
            worth[denied].append(left)
    for name in (subject, thing):
        if name not in names:
            names[name] = ConceptHash(name)
    sure, at = belief(*worth), moment(newest)
    return Edge(FactHash(fact), names[subject], predicate, names[thing], sure, count, at)
