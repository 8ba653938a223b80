"""Values of the concept graph as columns, and back; what the episodes of a fact come to. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log2
from operator import attrgetter
from typing import Any

from agentd.core.evidence import (
    CONSOLIDATION,
    HALF_LIFE,
    LEAST,
    STANDING,
    Trace,
    Weight,
    belief,
    faded_confidence,
    independent,
    read_evidence,
    teller_of,
)
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    EpisodeHash,
    FactHash,
    Held,
    Record,
    Relation,
)
from agentd.storage.codec import dumps

SECOND = 1_000_000  # microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_HALF_LIFE = HALF_LIFE // _TICK
_LONG_AGO = -(1 << 62)
LONE = b""  # the episode of a concept that stands by itself

Values = tuple[Any, ...]


def ticks(at: datetime) -> int:
    """An aware time in microseconds since 1970."""
    return (at - _EPOCH) // _TICK


def moment(microseconds: int) -> datetime:
    """The time that `ticks` gave, in UTC."""
    return _EPOCH + timedelta(0, 0, microseconds)  # by place: a question reads hundreds


def end_of(confidence: float, since: int) -> int:
    """When it will have faded below 0.01, to the microsecond or so; long ago if it always was."""
    if confidence < LEAST:
        return _LONG_AGO
    return since + int(_HALF_LIFE * log2(confidence / LEAST))


@dataclass(frozen=True, slots=True)
class MentionRow:
    """What one episode says of a concept, or with LONE the record by itself; times in ticks."""

    concept: bytes
    episode: bytes
    label: str
    confidence: float
    created: int
    updated: int
    aliases: tuple[str, ...]


def mentions(record: Record) -> Iterator[MentionRow]:
    """The record's concepts, each with every episode that it is an end of, or with none."""
    episodes: dict[bytes, list[bytes]] = {concept.hash.value: [] for concept in record.concepts}
    for relation in record.relations:
        subject, target, episode = (
            relation.subject.value,
            relation.object.value,
            relation.episode.value,
        )
        episodes[subject].append(episode)
        if target != subject:
            episodes[target].append(episode)
    for concept in record.concepts:
        created = ticks(concept.created)
        updated = created if concept.updated is concept.created else ticks(concept.updated)
        name, told = concept.hash.value, (concept.label, concept.confidence, created, updated)
        for episode in episodes[name] or (LONE,):
            yield MentionRow(name, episode, *told, concept.aliases)


def context_row(context: ConceptContext) -> Values:
    """A row of graph_contexts, from the column `hash` on."""
    said = ticks(context.event_time)
    where = (context.source, context.scope, context.agent, context.session)
    return context.hash.value, said, *where


def episode_row(relation: Relation, context: ConceptContext) -> Values:
    """A row of graph_episodes from `confidence` on, but for the column `promoted`."""
    said = ticks(context.event_time)
    stands = context.source in STANDING
    return (
        relation.confidence,
        ticks(relation.created),
        relation.denied,
        dumps(relation.refs) if relation.refs else "[]",
        said,
        context.source,
        context.scope,
        said,
        None if stands else end_of(relation.confidence, said),
        max(1, len(relation.refs)) if context.source == CONSOLIDATION else 1,
    )


def promoted_rows(relation: Relation, context: ConceptContext) -> list[tuple[bytes, bytes]]:
    """The rows of graph_promoted that the relation stands for: none unless it is a promotion."""
    if context.source != CONSOLIDATION:
        return []
    return [(read_evidence(ref)[0].value, relation.episode.value) for ref in relation.refs]


def concept_of(row: Sequence[Any], aliases: Iterable[str]) -> Concept:
    """A concept from its row."""
    _, name, label, confidence, created, updated = row
    first = moment(created)
    last = first if updated == created else moment(updated)
    names = tuple(sorted(set(aliases))) if aliases else ()
    return Concept(ConceptHash(name), label, confidence, first, last, names)


def context_of(row: Sequence[Any]) -> ConceptContext:
    """A context from its row."""
    return ConceptContext(ContextHash(row[1]), moment(row[2]), *row[3:])


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


def held_episode(row: Sequence[Any]) -> tuple[EpisodeHash, Held]:
    """What is held of an episode, by its hash."""
    name, sure, denied, refs, said = row
    return EpisodeHash(name), Held(sure, bool(denied), tuple(json.loads(refs)), moment(said))


RELATION = (
    "f.hash, e.hash, c.hash, s.hash, p.name, o.hash, e.confidence, e.created, e.denied, e.refs"
)
TRACE = f"{RELATION}, e.source, e.scope, e.said, e.since, e.promoted, c.agent"
_OF_RELATION = 10


def trace_of(row: Sequence[Any]) -> Trace:
    """An episode with its worth from the columns that TRACE names."""
    source, scope, said, since, promoted, agent = row[_OF_RELATION:]
    return Trace(
        relation_of(row[:_OF_RELATION]),
        source,
        scope,
        moment(said),
        moment(since),
        is_promoted=bool(promoted),
        teller=teller_of(source, agent),
    )


_TELLER = """CASE source WHEN 'shared'
    THEN (SELECT c.agent FROM graph_contexts c WHERE c.id = context) ELSE '' END"""  # as teller_of
WORTH = f"confidence, denied, said, since, until, observed, promoted, scope, {_TELLER}"


@dataclass(frozen=True, slots=True)
class Worth:
    """What an episode adds to its fact, by the columns that WORTH names."""

    confidence: float
    denied: int
    said: int
    since: int
    until: int | None
    observed: int
    promoted: int
    scope: str
    teller: str = ""

    @property
    def weight(self) -> Weight:
        """See `independent`."""
        return Weight(self.teller, bool(self.denied), bool(self.promoted), self.confidence)

    def left(self, now: int | None) -> float:
        """Its confidence at a time, or as it was said."""
        return remaining_confidence(self.confidence, self.since, self.until, now)


_WEIGHT = attrgetter("weight")


def remaining_confidence(
    confidence: float, since: int, until: int | None, now: int | None
) -> float:
    """What is left of a confidence at a time, or all of it without one."""
    if now is None or until is None:
        return confidence
    return faded_confidence(confidence, (now - since) / SECOND)


def worth_columns(episodes: Sequence[Worth]) -> Values:
    """The columns of graph_facts that all its episodes give, from `stands` on."""
    if len(episodes) == 1 and not episodes[0].promoted:
        return _columns_of_one(episodes[0])
    counting = [one for one in independent(episodes, _WEIGHT) if not one.promoted]
    stands = any(one.until is None and not one.denied for one in counting)
    denial = [one.confidence for one in counting if one.denied and one.until is None]
    support = [one for one in counting if not one.denied]
    if stands:
        rank = belief([one.confidence for one in support], denial)
    else:
        rank = float(_end_of_all(support, 1.0 - belief(denial)))
    newest = max(one.said for one in episodes)
    scopes = {one.scope for one in episodes}
    where = episodes[0].scope if len(scopes) == 1 else None
    return stands, rank, newest, where, None, None, None, None, None


def _columns_of_one(one: Worth) -> Values:
    """The same for one that no promotion counts: what it is worth stands with it."""
    stands = one.until is None and not one.denied
    end = _LONG_AGO if one.denied or one.until is None else one.until
    rank = one.confidence if stands else float(end)
    worth = one.confidence, one.denied, one.since, one.until, one.observed
    return stands, rank, one.said, one.scope, *worth


def _end_of_all(support: Sequence[Worth], share: float) -> int:
    """When what fades will together have faded below 0.01, were it added up and then multiplied."""
    if not support:
        return _LONG_AGO
    last = max(one.since for one in support)
    weight = sum(one.confidence * 0.5 ** ((last - one.since) / _HALF_LIFE) for one in support)
    return end_of(weight * share, last)


def together(episodes: Sequence[Worth], now: int | None) -> tuple[float, int, int]:
    """What episodes of a fact come to: its confidence, how often it was said, and when last."""
    worth: tuple[list[float], list[float]] = ([], [])
    counting = independent(episodes, _WEIGHT)
    for one in counting:
        if not one.promoted:  # its promotion counts it
            worth[one.denied].append(one.left(now))
    count = sum(one.observed - one.promoted for one in counting)
    return belief(*worth), count, max(one.said for one in episodes)
