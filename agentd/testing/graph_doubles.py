"""Doubles of the concept graph's stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TypeVar

from msgspec.structs import replace

from agentd.core.evidence import (
    CONSOLIDATION,
    FACTS,
    GROUP,
    LEAST,
    SURVIVING,
    Consolidated,
    Trace,
    belief,
    check,
    independent,
    read_evidence,
    teller_of,
)
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    ContextHash,
    Edge,
    EpisodeHash,
    FactHash,
    GraphCounts,
    InsertCounts,
    KeptEpisode,
    Record,
    Relation,
    Share,
    StoredEpisode,
)
from agentd.core.ports import GraphStore, Walk


class MemoryGraphRecords:
    """The GraphRecords, ShareStore and ProgramStates in memory."""

    def __init__(self) -> None:
        self.episodes: dict[EpisodeHash, KeptEpisode] = {}
        self.names: dict[str, None] = {}
        self.shared: tuple[Share, ...] = ()
        self.programs: dict[str, str] = {}
        self.took_earlier = False

    async def kept_episodes(self) -> Sequence[KeptEpisode]:
        return sorted(self.episodes.values(), key=lambda one: one.at)

    async def keep(self, episodes: Sequence[KeptEpisode]) -> None:
        for one in episodes:
            self.episodes.setdefault(one.episode, one)

    async def drop(
        self,
        episodes: Collection[EpisodeHash],
        withdrawn: Collection[str] = (),
        *,
        traceless: bool = False,
    ) -> None:
        self.names.update(dict.fromkeys(sorted(withdrawn)))
        for one in episodes:
            self.episodes.pop(one, None)

    async def withdrawn_names(self) -> frozenset[str]:
        return frozenset(self.names)

    async def has_earlier(self) -> bool:
        return self.took_earlier

    async def take_earlier(
        self,
        episodes: Sequence[KeptEpisode],
        withdrawn: Sequence[str],
        shares: Sequence[Share],
        at: datetime,
    ) -> None:
        await self.keep(episodes)
        self.names.update(dict.fromkeys(withdrawn))
        self.shared = (*self.shared, *shares)
        self.took_earlier = True

    async def shares(self) -> Sequence[Share]:
        return self.shared

    async def put_shares(self, shares: Sequence[Share], *, traceless: bool = False) -> None:
        self.shared = tuple(shares)

    async def program_state(self, name: str) -> str:
        return self.programs.get(name, "")

    async def keep_program_state(self, name: str, state: str, at: datetime) -> None:
        self.programs[name] = state
        if not state:
            del self.programs[name]


class MemoryTextFiles:
    """Files of agentd's own, such as the graph's text, in memory by path."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.outside: dict[str, frozenset[bytes]] = {}  # lines that come from outside, by path

    async def replace(self, path: str, data: bytes, outside: Collection[bytes] = ()) -> None:
        self.held[path] = data
        self.outside[path] = frozenset(outside)

    async def delete(self, path: str) -> None:
        self.held.pop(path, None)
        self.outside.pop(path, None)

    async def names(self, folder: str) -> list[str]:
        return sorted(
            path.removeprefix(f"{folder}/") for path in self.held if path.startswith(folder)
        )


class MemoryNotes:
    """The Notes of the graph's text in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def meta(self, name: str) -> str:
        return self.kept.get(name, "")

    async def set_meta(self, name: str, value: str) -> None:
        self.kept[name] = value


T = TypeVar("T")


async def walked(walk: Walk[T], store: GraphStore) -> T:
    """Run a walk over the edges of the store, and return its result."""
    try:
        asked = next(walk)
        while True:
            found = await store.edges(
                asked.concepts,
                scopes=asked.scopes,
                now=asked.now,
                most=asked.most,
                about=asked.about,
            )
            asked = walk.send(found)
    except StopIteration as end:
        outcome: T = end.value
        return outcome


class InMemoryGraph:
    """A GraphStore in memory."""

    def __init__(self) -> None:
        self._mentions: dict[ConceptHash, dict[EpisodeHash | None, Concept]] = {}
        self._contexts: dict[ContextHash, ConceptContext] = {}
        self._since: dict[EpisodeHash, datetime] = {}  # touched episodes, with the time
        self._episodes: dict[EpisodeHash, Relation] = {}
        self._promotions: dict[EpisodeHash, frozenset[EpisodeHash]] = {}
        self._consolidations: list[Consolidated] = []

    async def insert(self, records: Sequence[Record]) -> InsertCounts:
        for record in records:
            check(record)
        before = await self.counts()
        for record in records:
            self._insert(record)
        now = await self.counts()
        episodes = now.episodes - before.episodes
        known = sum(len(record.relations) for record in records) - episodes
        return InsertCounts(
            now.concepts - before.concepts, now.facts - before.facts, episodes, known
        )

    async def stored_episodes(self) -> Mapping[EpisodeHash, StoredEpisode]:
        return {
            name: StoredEpisode(
                one.confidence, one.denied, one.refs, self._said(name).astimezone(UTC)
            )
            for name, one in self._episodes.items()
        }

    async def said_on(self, day: date) -> Sequence[Relation]:
        found = sorted(n for n in self._episodes if self._said(n).astimezone(UTC).date() == day)
        return [self._episodes[name] for name in found]

    async def remove(self, episodes: Sequence[EpisodeHash]) -> int:
        wanted = set(episodes)
        there = wanted & self._episodes.keys()
        self._remove(wanted | {p for p, counted in self._promotions.items() if counted & wanted})
        return len(there)

    async def counts(self) -> GraphCounts:
        facts = {relation.fact: relation.predicate for relation in self._episodes.values()}
        predicates = dict(sorted(Counter(facts.values()).items()))
        sizes = (len(self._mentions), len(facts), len(self._episodes), len(self._contexts))
        return GraphCounts(*sizes, predicates)

    async def concepts(self, hashes: Sequence[ConceptHash]) -> Mapping[ConceptHash, Concept]:
        return {name: self._concept(name) for name in sorted(hashes) if name in self._mentions}

    async def labels(self, hashes: Collection[ConceptHash]) -> Mapping[ConceptHash, str]:
        return {name: one.label for name, one in (await self.concepts([*hashes])).items()}

    async def contexts(self, hashes: Sequence[ContextHash]) -> Mapping[ContextHash, ConceptContext]:
        return {name: self._contexts[name] for name in hashes if name in self._contexts}

    async def named(self, names: Sequence[str]) -> Sequence[Concept]:
        folded = {spelling for name in names for spelling in (name, name.casefold())}
        everything = map(self._concept, sorted(self._mentions))
        return [
            one
            for one in everything
            if one.label in folded or any(alias.casefold() in folded for alias in one.aliases)
        ]

    async def edges(
        self,
        concepts: Sequence[ConceptHash],
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
        most: int | None = None,
        about: Collection[str] = (),
    ) -> Sequence[Edge]:
        edges = self._edges(await self.episodes(concepts), scopes, now)
        if most is None:
            return edges
        kept: set[Edge] = set()
        for concept in concepts:
            own = [edge for edge in edges if concept in (edge.subject, edge.object)]
            own.sort(key=_surest)
            kept.update(own[:most])
            kept.update([edge for edge in own if edge.predicate in about][:most])
        return [edge for edge in edges if edge in kept]

    async def walk(self, walk: Walk[T]) -> T:
        return await walked(walk, self)

    async def stating(
        self,
        predicate: str,
        limit: int,
        *,
        scopes: Sequence[str] | None = None,
        now: datetime | None = None,
    ) -> Sequence[Edge]:
        saying = [r for r in self._episodes.values() if r.predicate == predicate]
        edges = self._edges(saying, scopes, now)
        return sorted(edges, key=_surest)[:limit]

    async def predicates(self) -> Sequence[str]:
        return sorted({relation.predicate for relation in self._episodes.values()})

    async def episodes(self, concepts: Sequence[ConceptHash] | None = None) -> Sequence[Relation]:
        wanted = None if concepts is None else set(concepts)
        return [
            relation
            for _, relation in sorted(self._episodes.items())
            if wanted is None or relation.subject in wanted or relation.object in wanted
        ]

    async def traces(
        self, facts: Sequence[FactHash], *, scopes: Sequence[str] | None = None
    ) -> Sequence[Trace]:
        wanted = set(facts)
        found = [t for t in self._traces() if t.relation.fact in wanted]
        return [trace for trace in found if scopes is None or trace.scope in scopes]

    async def promotable(self, now: datetime) -> Sequence[Trace]:
        lively = [
            trace
            for trace in self._traces()
            if (not trace.stands or trace.source == FACTS)
            and not trace.is_promoted
            and trace.effective(now) > SURVIVING
        ]
        sizes = Counter(map(_group, lively))
        return [trace for trace in lively if sizes[_group(trace)] >= GROUP]

    async def touch(self, episodes: Sequence[EpisodeHash], at: datetime) -> int:
        found = self._fading() & set(episodes)
        for episode in found:
            before = self._since.get(episode, self._said(episode))
            self._since[episode] = max(before, at.astimezone(UTC))
        return len(found)

    async def sweep(self, now: datetime) -> Sequence[Relation]:
        fading = [trace for trace in self._traces() if not trace.stands]
        gone = [trace.relation for trace in fading if trace.effective(now) < LEAST]
        self._remove({relation.episode for relation in gone})
        return gone

    async def note(self, consolidated: Consolidated) -> None:
        self._consolidations.append(consolidated)

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        return self._consolidations[::-1][:limit]

    def _insert(self, record: Record) -> None:
        contexts = {context.hash: context for context in record.contexts}
        lone = {concept.hash: concept for concept in record.concepts}
        concepts = dict(lone)
        for relation in record.relations:
            self._contexts.setdefault(relation.context, contexts[relation.context])
            if contexts[relation.context].source == CONSOLIDATION:
                counted = frozenset(read_evidence(ref)[0] for ref in relation.refs)
                self._promotions.setdefault(relation.episode, counted)
            self._episodes.setdefault(relation.episode, relation)
            for end in (relation.subject, relation.object):
                self._mention(concepts[end], relation.episode)
                lone.pop(end, None)
        for concept in lone.values():
            self._mention(concept, None)

    def _mention(self, concept: Concept, episode: EpisodeHash | None) -> None:
        known = self._mentions.setdefault(concept.hash, {})
        known[episode] = _united([*([known[episode]] if episode in known else []), concept])

    def _remove(self, episodes: set[EpisodeHash]) -> None:
        for episode in episodes:
            self._episodes.pop(episode, None)
            self._promotions.pop(episode, None)
            self._since.pop(episode, None)
            for mentioned in self._mentions.values():
                mentioned.pop(episode, None)
        self._mentions = {name: those for name, those in self._mentions.items() if those}
        needed = {relation.context for relation in self._episodes.values()}
        self._contexts = {name: c for name, c in self._contexts.items() if name in needed}

    def _concept(self, name: ConceptHash) -> Concept:
        return _united(self._mentions[name].values())

    def _said(self, episode: EpisodeHash) -> datetime:
        return self._contexts[self._episodes[episode].context].event_time

    def _fading(self) -> set[EpisodeHash]:
        return {trace.relation.episode for trace in self._traces() if not trace.stands}

    def _traces(self) -> list[Trace]:
        counted = {episode for those in self._promotions.values() for episode in those}
        found = []
        for name, relation in sorted(self._episodes.items()):
            context = self._contexts[relation.context]
            since = self._since.get(name, context.event_time)
            where = (context.source, context.scope, context.event_time, since)
            teller = teller_of(context.source, context.agent)
            found.append(Trace(relation, *where, is_promoted=name in counted, teller=teller))
        return found

    def _edges(
        self, relations: Iterable[Relation], scopes: Sequence[str] | None, now: datetime | None
    ) -> list[Edge]:
        facts = {relation.fact for relation in relations}
        by_fact: dict[FactHash, list[Trace]] = {}
        for trace in self._traces():
            if trace.relation.fact in facts and (scopes is None or trace.scope in scopes):
                by_fact.setdefault(trace.relation.fact, []).append(trace)
        return [_edge(traces, now) for _, traces in sorted(by_fact.items())]


def _united(concepts: Iterable[Concept]) -> Concept:
    first, *others = concepts
    for other in others:
        first = replace(
            first,
            confidence=max(first.confidence, other.confidence),
            created=min(first.created, other.created),
            updated=max(first.updated, other.updated),
            aliases=(*first.aliases, *other.aliases),
        )
    return replace(first, aliases=tuple(sorted(set(first.aliases))))


def _surest(edge: Edge) -> tuple[float, float, bytes]:
    return -edge.confidence, -edge.newest.timestamp(), edge.fact.value


def _group(trace: Trace) -> tuple[FactHash, str, bool]:
    return trace.relation.fact, trace.scope, trace.relation.denied


def _edge(traces: Sequence[Trace], now: datetime | None) -> Edge:
    first = traces[0].relation
    worth: dict[bool, list[float]] = {False: [], True: []}
    counting = independent(traces, lambda trace: trace.weight)
    for trace in counting:
        if not trace.is_promoted:
            left = trace.relation.confidence if now is None else trace.effective(now)
            worth[trace.relation.denied].append(left)
    return Edge(
        first.fact,
        first.subject,
        first.predicate,
        first.object,
        belief(worth[False], worth[True]),
        sum(trace.observations - trace.is_promoted for trace in counting),
        max(trace.said for trace in traces),
    )
