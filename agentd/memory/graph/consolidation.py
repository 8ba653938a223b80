"""Consolidation: promotes what was said often enough, and deletes what has faded.

A promotion is an episode with the source "consolidation": it does not fade, and its `refs` name the
episodes it counts. Each episode is counted by at most one promotion, unless that promotion is
deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256

from msgspec import Struct

from agentd.core.erasure import Erasure
from agentd.core.evidence import CONSOLIDATION, Consolidated, Trace, belief, evidence, read_evidence
from agentd.core.graph import (
    Concept,
    ConceptContext,
    ConceptHash,
    EpisodeHash,
    FactHash,
    KeptEpisode,
    Record,
    Relation,
)
from agentd.core.ports import Clock, GraphRecords, GraphStore
from agentd.core.text import FoldedText, trim_punctuation
from agentd.zero.formats.reading import read
from agentd.zero.formats.records import canonical, concepts_told
from agentd.zero.formats.writing import write
from agentd.zero.hashes import context_hash, episode_hash


class KeptRecords(Struct, frozen=True):
    """One kept episode (said by another agent, or a promotion): its row, and its parsed record."""

    row: KeptEpisode
    record: Record

    @property
    def relation(self) -> Relation:
        """The episode that the record holds."""
        return self.record.relations[0]

    @property
    def counted(self) -> frozenset[EpisodeHash]:
        """The episodes it counts; empty unless it is a promotion."""
        if self.record.contexts[0].source != CONSOLIDATION:
            return frozenset()
        return frozenset(read_evidence(ref)[0] for ref in self.relation.refs)

    def says(self, erasure: Erasure) -> bool:
        """Whether the episode states what is to be erased: its text contains the words, or the
        words contain both of its ends.
        """
        labels = {one.hash: one.label for one in self.record.concepts}
        said = [
            labels[self.relation.subject],
            self.relation.predicate,
            labels[self.relation.object],
        ]
        subject, predicate, target = (_words(one) for one in said)
        whole = FoldedText(f"{subject} {predicate} {target}")
        parts = (part for one in erasure.excerpts for part in one.parts)
        for text in (*erasure.spans, *parts, *erasure.sentences):
            words = FoldedText(text)
            if any(whole.places(trim_punctuation(_words(words.text)))):
                return True
            if any(words.places(subject)) and any(words.places(target)):
                return True
        return False


def rows(
    record: Record, teller: str, at: datetime, receipts: Mapping[EpisodeHash, str] | None = None
) -> list[KeptEpisode]:
    """Split a record into rows, one per episode. `receipts` are those of the chain."""
    return [
        KeptEpisode(
            one.episode,
            teller,
            at,
            write(alone(record, one)),
            (receipts or {}).get(one.episode, ""),
        )
        for one in record.relations
    ]


def alone(record: Record, relation: Relation) -> Record:
    """Return the record of one episode and everything it names."""
    concepts = {one.hash: one for one in record.concepts}
    contexts = tuple(one for one in record.contexts if one.hash == relation.context)
    return canonical(Record(concepts_told(concepts, [relation]), contexts, (relation,)))


def read_rows(kept: Iterable[KeptEpisode]) -> list[KeptRecords]:
    """Parse rows. Raises GraphError for a damaged one."""
    return [KeptRecords(row, read(row.said)) for row in kept]


def valid(kept: Sequence[KeptRecords], derived: Collection[EpisodeHash]) -> list[KeptRecords]:
    """Return the records without promotions that count an episode which no longer exists."""
    known = {one.relation.episode for one in kept if not one.counted}.union(derived)
    return [one for one in kept if one.counted <= known]


def ends_of(relations: Iterable[Relation]) -> set[ConceptHash]:
    """Return the concepts that episodes are about."""
    return {end for one in relations for end in (one.subject, one.object)}


def _words(label: str) -> str:
    """Return a label as people write it, folded."""
    return FoldedText(label.replace("-", " ").replace("_", " ")).text


MOST = 1_000  # episodes that one promotion may count, since it names them all


class Consolidation:
    """The daily consolidation. No episode may be deleted while it runs: a promotion could count
    what has just been forgotten.
    """

    def __init__(self, store: GraphStore, records: GraphRecords, clock: Clock) -> None:
        self._store = store
        self._records = records
        self._clock = clock

    async def run(self) -> Consolidated:
        """Promote, then sweep, and record the result.

        Each group of at least three episodes that state (or deny) the same fact in the same scope
        and are worth more than 0.1 now is promoted to one episode, whose confidence is the noisy-OR
        of theirs; groups of more than a thousand to several. The fact's confidence at this moment
        does not change, but no longer fades. Promotions are stored before the tables have them.
        Raises StorageError.
        """
        now = self._clock.now()
        made = await self._promotions(now)
        if made:
            await self._records.keep([row for record in made for row in rows(record, "", now)])
            await self._store.insert(made)
        swept = await self._store.sweep(now)
        done = Consolidated(promoted=len(made), swept=len(swept), at=now)
        await self._store.note(done)
        return done

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
    """Return the record that promotes episodes of one fact and scope. Its context has the time of
    the newest of them and, as agent, a hash of all: the same evidence gives the same episode.
    """
    refs = sorted(evidence(trace.relation.episode, trace.said) for trace in traces)
    name = sha256("\n".join(refs).encode()).hexdigest()[:16]
    where = (max(trace.said for trace in traces), CONSOLIDATION, traces[0].scope, name)
    context = ConceptContext(context_hash(*where), *where)
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
    return canonical(Record(concepts_told(concepts, [relation]), (context,), (relation,)))


def _portions(traces: Sequence[Trace]) -> Iterator[Sequence[Trace]]:
    """Split the traces into as few lists of about equal length as MOST allows."""
    count = -(-len(traces) // MOST)
    for number in range(count):
        yield traces[number::count]


def _ends(relation: Relation) -> tuple[ConceptHash, ConceptHash]:
    return relation.subject, relation.object
