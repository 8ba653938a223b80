"""Values of the concept graph as columns, and columns that sum up the episodes of a fact. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import log2
from operator import attrgetter
from typing import Any

from msgspec import Struct

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
    Record,
    Relation,
    StoredEpisode,
)
from agentd.storage.codec import dumps

SECOND = 1_000_000  # microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_HALF_LIFE = HALF_LIFE // _TICK
_LONG_AGO = -(1 << 62)
LONE = b""  # stands for "no episode": a concept that no relation of its record names

Values = tuple[Any, ...]


def ticks(at: datetime) -> int:
    """Return an aware time as microseconds since 1970."""
    return (at - _EPOCH) // _TICK


def moment(microseconds: int) -> datetime:
    """Return the time of these microseconds since 1970, in UTC."""
    return _EPOCH + timedelta(0, 0, microseconds)  # by place: faster, a query reads hundreds


def end_of(confidence: float, since: int) -> int:
    """Return when the confidence will have faded below LEAST (0.01), in microseconds since 1970,
    rounded: `since + 7 days · log2(confidence / 0.01)`. Far in the past if it is below that
    already.
    """
    if confidence < LEAST:
        return _LONG_AGO
    return since + int(_HALF_LIFE * log2(confidence / LEAST))


class MentionRow(Struct, frozen=True):
    """What one episode says about a concept; with the episode LONE, what a record says without one.
    Times are microseconds since 1970.
    """

    concept: bytes
    episode: bytes
    label: str
    confidence: float
    created: int
    updated: int
    aliases: tuple[str, ...]


def mentions(record: Record) -> Iterator[MentionRow]:
    """Yield the concepts of the record, each once for every episode with it as subject or object,
    or with LONE if there is none.
    """
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
    """Return the values of a graph_contexts row, from the column `hash` on."""
    said = ticks(context.event_time)
    where = (context.source, context.scope, context.agent, context.session)
    return context.hash.value, said, *where


def episode_row(relation: Relation, context: ConceptContext) -> Values:
    """Return the values of a graph_episodes row, from `confidence` on, without `promoted`."""
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
    """Return the graph_promoted rows of a promotion; none for any other relation."""
    if context.source != CONSOLIDATION:
        return []
    return [(read_evidence(ref)[0].value, relation.episode.value) for ref in relation.refs]


def concept_of(row: Sequence[Any], aliases: Iterable[str]) -> Concept:
    """Return the concept of a graph_concepts row."""
    _, name, label, confidence, created, updated = row
    first = moment(created)
    last = first if updated == created else moment(updated)
    names = tuple(sorted(set(aliases))) if aliases else ()
    return Concept(ConceptHash(name), label, confidence, first, last, names)


def context_of(row: Sequence[Any]) -> ConceptContext:
    """Return the context of a graph_contexts row."""
    return ConceptContext(ContextHash(row[1]), moment(row[2]), *row[3:])


def relation_of(row: Sequence[Any]) -> Relation:
    """Return the episode of a row with the columns RELATION."""
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


def held_episode(row: Sequence[Any]) -> tuple[EpisodeHash, StoredEpisode]:
    """Return the hash of an episode, and its StoredEpisode value."""
    name, sure, denied, refs, said = row
    return EpisodeHash(name), StoredEpisode(
        sure, bool(denied), tuple(json.loads(refs)), moment(said)
    )


RELATION = (
    "f.hash, e.hash, c.hash, s.hash, p.name, o.hash, e.confidence, e.created, e.denied, e.refs"
)
TRACE = f"{RELATION}, e.source, e.scope, e.said, e.since, e.promoted, c.agent"
_OF_RELATION = 10


def trace_of(row: Sequence[Any]) -> Trace:
    """Return the trace of a row with the columns TRACE."""
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


class EpisodeWorth(Struct, frozen=True):
    """The values by which an episode counts for its fact, in the order of the columns WORTH."""

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
        """The values by which `independent` chooses."""
        return Weight(self.teller, bool(self.denied), bool(self.promoted), self.confidence)

    def left(self, now: int | None) -> float:
        """Return the confidence, faded to `now`; unfaded if `now` is None."""
        return remaining_confidence(self.confidence, self.since, self.until, now)


_WEIGHT = attrgetter("weight")


def remaining_confidence(
    confidence: float, since: int, until: int | None, now: int | None
) -> float:
    """Return a confidence that fades from `since` on, faded to `now`. It is unfaded if `now` is
    None or `until` is None, which marks an episode that does not fade.
    """
    if now is None or until is None:
        return confidence
    return faded_confidence(confidence, (now - since) / SECOND)


def worth_columns(episodes: Sequence[EpisodeWorth]) -> Values:
    """Return the values of graph_facts that follow from all its episodes, from `stands` on."""
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


def _columns_of_one(one: EpisodeWorth) -> Values:
    """Return the same for a single episode that no promotion counts: its own values are stored with
    the fact.
    """
    stands = one.until is None and not one.denied
    end = _LONG_AGO if one.denied or one.until is None else one.until
    rank = one.confidence if stands else float(end)
    worth = one.confidence, one.denied, one.since, one.until, one.observed
    return stands, rank, one.said, one.scope, *worth


def _end_of_all(support: Sequence[EpisodeWorth], share: float) -> int:
    """Return when the fading episodes will together have faded below 0.01, as if their confidences
    were added up and multiplied by `share`: an upper bound.
    """
    if not support:
        return _LONG_AGO
    last = max(one.since for one in support)
    weight = sum(one.confidence * 0.5 ** ((last - one.since) / _HALF_LIFE) for one in support)
    return end_of(weight * share, last)


def together(episodes: Sequence[EpisodeWorth], now: int | None) -> tuple[float, int, int]:
    """Return what the episodes of a fact add up to at `now` (None: unfaded): its confidence, how
    often it was said, and when last.
    """
    worth: tuple[list[float], list[float]] = ([], [])
    counting = independent(episodes, _WEIGHT)
    for one in counting:
        if not one.promoted:  # else its promotion counts it
            worth[one.denied].append(one.left(now))
    count = sum(one.observed - one.promoted for one in counting)
    return belief(*worth), count, max(one.said for one in episodes)
