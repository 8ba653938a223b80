"""Consolidation: what was said often enough becomes what is held to be so; what has faded goes.

A promotion is an episode like any other, with "consolidation" as its source: it is written to the
graph's text, so the tables can be made again, does not fade, and names in its `refs` the episodes that
it counts. Each episode is counted by one promotion at most, ever, unless that is taken out.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Protocol

from agentd.domain.belief import CONSOLIDATION, Consolidated, Trace, belief, evidence
from agentd.domain.concept import Concept, ConceptHash, Context, FactHash, Record, Relation
from agentd.graph.emitter import emit
from agentd.graph.files import Loaded
from agentd.graph.hashing import context_hash, episode_hash
from agentd.ports import Clock, GraphStore

MOST = (
    1_000  # episodes that one promotion counts: its text names them all, and a file takes so much
)
_MARGIN = timedelta(days=2)  # zones, and clocks that are put right


class Texts(Protocol):
    """The graph's text, as GraphFiles has it."""

    async def append(self, texts: Sequence[str]) -> Sequence[str]:
        """Add compiled graphs, durably."""

    async def promotions(self, since: datetime | None) -> Loaded:
        """The promotions written since that time, or ever."""


class Consolidation:
    """The daily work on the graph. While it runs, nobody else takes episodes out: a promotion would
    count what has just been forgotten.
    """

    def __init__(self, store: GraphStore, texts: Texts, clock: Clock) -> None:
        self._store = store
        self._texts = texts
        self._clock = clock
        self._running = asyncio.Lock()

    async def run(self) -> Consolidated:
        """Promote, then sweep, and remember that it was done.

        Promoted is each group of at least three episodes that say the same fact in the same scope, or
        deny it, and are worth more than 0.1 now, as one episode with the noisy-OR of what they are
        worth; of more than a thousand, as several. It is sure at the moment what the fact was sure before,
        and stays so. The text is written first: whatever cuts this short, the next run finds there what
        was promoted.
        """
        async with self._running:
            now = self._clock.now()
            await self._catch_up(now)
            made = await self._promotions(now)
            if made:
                await self._texts.append([emit(record) for record in made])
                await self._store.insert(made)
            swept = await self._store.sweep(now)
            done = Consolidated(promoted=len(made), swept=len(swept), at=now)
            await self._store.note(done)
        return done

    async def _catch_up(self, now: datetime) -> None:
        """Take in promotions that stand in the text alone, since a run was cut short."""
        last = await self._store.consolidations(1)
        since = min(last[0].at, now) - _MARGIN if last else None
        written = await self._texts.promotions(since)
        if written.records:
            await self._store.insert(written.records)

    async def _promotions(self, now: datetime) -> list[Record]:
        groups: defaultdict[tuple[FactHash, str, bool], list[Trace]] = defaultdict(list)
        for trace in await self._store.promotable(now):
            said = trace.relation
            groups[said.fact, trace.scope, said.denied].append(trace)
        ends = {e for traces in groups.values() for e in _ends(traces[0].relation)}
        concepts = await self._store.concepts(sorted(ends))
        several = (some for key in sorted(groups) for some in _portions(groups[key]))
        return [promotion(some, concepts, now) for some in several]


def promotion(
    traces: Sequence[Trace], concepts: Mapping[ConceptHash, Concept], now: datetime
) -> Record:
    """The record that promotes episodes of one fact and scope. Its context has the time of the newest
    of them and, as agent, a name made of all: the same evidence is the same episode.
    """
    refs = sorted(evidence(trace.relation.episode, trace.said) for trace in traces)
    name = sha256("\n".join(refs).encode()).hexdigest()[:16]
    where = (max(trace.said for trace in traces), CONSOLIDATION, traces[0].scope, name)
    context = Context(context_hash(*where), *where)
    said = traces[0].relation
    relation = Relation(
        fact=said.fact,
        episode=episode_hash(said.fact, context.hash),
        context=context.hash,
        subject=said.subject,
        predicate=said.predicate,
        object=said.object,
        confidence=belief(trace.effective(now) for trace in traces),
        created=now,
        denied=said.denied,
        refs=tuple(refs),
    )
    ends = tuple(concepts[end] for end in sorted(set(_ends(said))))
    return Record(ends, (context,), (relation,))


def _portions(traces: Sequence[Trace]) -> Iterator[Sequence[Trace]]:
    """All of them, in as few lists of about one length as MOST allows."""
    count = -(-len(traces) // MOST)
    for number in range(count):
        yield traces[number::count]


def _ends(relation: Relation) -> tuple[ConceptHash, ConceptHash]:
    return relation.subject, relation.object
