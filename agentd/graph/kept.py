"""Episodes that no fact says, as they are kept: what other agents said, and promotions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.belief import CONSOLIDATION, read_evidence
from agentd.domain.concept import ConceptHash, EpisodeHash, Record, Relation
from agentd.domain.erasure import Erasure
from agentd.domain.exchange import KeptEpisode
from agentd.domain.folding import Folded, trimmed
from agentd.graph.formats.integrity import canonical, told_by
from agentd.graph.formats.reading import read
from agentd.graph.formats.writing import write


@dataclass(frozen=True, slots=True)
class Kept:
    """One episode, its row and what it says."""

    row: KeptEpisode
    record: Record

    @property
    def relation(self) -> Relation:
        """The episode."""
        return self.record.relations[0]

    @property
    def counted(self) -> frozenset[EpisodeHash]:
        """The episodes that it counts: none unless it is a promotion."""
        if self.record.contexts[0].source != CONSOLIDATION:
            return frozenset()
        return frozenset(read_evidence(ref)[0] for ref in self.relation.refs)

    def says(self, erasure: Erasure) -> bool:
        """Whether it says what is to be erased: the words stand in it, or both of its ends stand in them."""
        labels = {one.hash: one.label for one in self.record.concepts}
        said = [
            labels[self.relation.subject],
            self.relation.predicate,
            labels[self.relation.object],
        ]
        subject, predicate, target = (_words(one) for one in said)
        whole = Folded(f"{subject} {predicate} {target}")
        for text in (*erasure.spans, *erasure.sentences):
            words = Folded(text)
            if any(whole.places(trimmed(_words(words.text)))):
                return True
            if any(words.places(subject)) and any(words.places(target)):
                return True
        return False


def rows(
    record: Record, teller: str, at: datetime, receipts: Mapping[EpisodeHash, str] | None = None
) -> list[KeptEpisode]:
    """The episodes of a record, one by one. `receipts` are what the chain gave for them."""
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
    """One episode of a record, with what it names."""
    concepts = {one.hash: one for one in record.concepts}
    contexts = tuple(one for one in record.contexts if one.hash == relation.context)
    return canonical(Record(told_by(concepts, [relation]), contexts, (relation,)))


def read_rows(kept: Iterable[KeptEpisode]) -> list[Kept]:
    """What rows say. Raises GraphError for one that is damaged."""
    return [Kept(row, read(row.said)) for row in kept]


def valid(kept: Sequence[Kept], derived: Collection[EpisodeHash]) -> list[Kept]:
    """Without the promotions that count what nobody says any more."""
    known = {one.relation.episode for one in kept if not one.counted}.union(derived)
    return [one for one in kept if one.counted <= known]


def ends_of(relations: Iterable[Relation]) -> set[ConceptHash]:
    """The concepts that episodes are about."""
    return {end for one in relations for end in (one.subject, one.object)}


def _words(label: str) -> str:
    """A label as people write it."""
    return Folded(label.replace("-", " ").replace("_", " ")).text
