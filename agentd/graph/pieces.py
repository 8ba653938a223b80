"""A file of compiled graphs, cut so that damage to one is no damage to the next. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agentd.domain.belief import CONSOLIDATION, SHARED, check, read_evidence
from agentd.domain.concept import Concept, ConceptHash, EpisodeHash, Record, Relation
from agentd.errors import GraphError
from agentd.graph.decompiler import Decompiled, decompile
from agentd.graph.emitter import emit
from agentd.graph.verbatim import read_verbatim
from agentd.graph.zero.parser import parse_all

_BEGINS = re.compile(r"^\ufeff?Graph\b", re.MULTILINE)

RECEIPT = "chain"  # beside a graph: what its entry in the chain is known by
_ENTERED = re.compile(rf'"{RECEIPT}":\s*"[0-9]')  # in the text of one, damaged or not

Says = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file: `raw` from a line that begins with `Graph` to the next one, and the graphs in
    it, which may be none. With `damage` there is nothing in it that can be used; its line counts from
    the beginning of the file.
    """

    raw: str
    line: int
    said: tuple[Decompiled, ...] = ()
    damage: GraphError | None = None

    def episodes(self) -> Iterator[EpisodeHash]:
        """All that is said in it."""
        return (relation.episode for relation, _ in self._relations())

    def promotions(self) -> Iterator[tuple[EpisodeHash, frozenset[EpisodeHash]]]:
        """The promotions in it, each with the episodes that it counts."""
        for relation, source in self._relations():
            if source == CONSOLIDATION:
                counted = frozenset(read_evidence(ref)[0] for ref in relation.refs)
                yield relation.episode, counted

    def told(self, episodes: Collection[EpisodeHash]) -> Iterator[str]:
        """The names under which other agents sent those of these episodes that are theirs."""
        for relation, source in self._relations():
            if source == SHARED and relation.episode in episodes:
                yield from relation.refs

    def receipts(self) -> Iterator[tuple[str, Record]]:
        """The receipts in it, each with what it is of. What is damaged now is not what was entered: of
        that there is an empty one.
        """
        if self.damage is not None and _ENTERED.search(self.raw):
            yield "", Record()
        for one in self.said:
            if RECEIPT in one.metadata:
                yield one.metadata[RECEIPT], one.record

    def saying(self, says: Says) -> Iterator[EpisodeHash]:
        """The episodes whose words, put together, are what `says` looks for."""
        for one in self.said:
            labels = {concept.hash: concept.label for concept in one.record.concepts}
            for relation in one.record.relations:
                if says(_sentence(relation, labels)):
                    yield relation.episode

    def without(self, episodes: Collection[EpisodeHash], says: Says) -> Piece:
        """The piece without these episodes, without the concepts that only they were about, and without
        whatever else says it; itself if that changes nothing.
        """
        if self.damage is not None or not self.said:
            return replace(self, raw="", damage=None) if says(self.raw) else self
        left = tuple(_without(one, episodes, says) for one in self.said)
        if left == self.said:
            return self
        texts = [
            emit(one.record, utterance=one.utterance, metadata=one.metadata)
            for one in left
            if one.record.concepts or one.record.relations
        ]
        return replace(self, raw="".join(texts), said=left)

    def lost_more(self, left: Piece) -> bool:
        """Whether in what `without` left of it there is less than taking out episodes takes out: a
        concept has fewer other names, or one that stood by itself is gone.
        """
        return any(map(_lost_more, self.said, left.said))

    def _relations(self) -> Iterator[tuple[Relation, str]]:
        for one in self.said:
            sources = {context.hash: context.source for context in one.record.contexts}
            for relation in one.record.relations:
                yield relation, sources[relation.context]


def read_pieces(text: str, may_matter: Says | None = None) -> tuple[Piece, ...]:
    """The pieces of a file, which together are its text; never fails. Of one that cannot matter nothing
    but its text is there: telling that is much quicker than reading it.
    """
    starts = [found.start() for found in _BEGINS.finditer(text)]
    cuts = [0, *(start for start in starts if start), len(text)]
    pieces, line = [], 1
    for start, end in pairwise(cuts):
        raw = text[start:end]
        is_read = may_matter is None or may_matter(raw)
        pieces.append(_read(raw, line) if is_read else Piece(raw, line))
        line += text.count("\n", start, end)
    return tuple(pieces)


def _read(raw: str, line: int) -> Piece:
    if (said := read_verbatim(raw)) is not None:
        return Piece(raw, line, (said,))
    try:
        return Piece(raw, line, _said(raw, line))
    except GraphError as damage:
        damage.__cause__ = damage.__context__ = None  # what led to it holds all that was read
        return Piece(raw, line, damage=damage.with_traceback(None))


def _said(text: str, line: int) -> tuple[Decompiled, ...]:
    said = tuple(decompile(graph) for graph in parse_all(text, line))
    for one in said:
        check(one.record)
    return said


def _sentence(relation: Relation, labels: dict[ConceptHash, str]) -> str:
    words = (labels[relation.subject], relation.predicate, labels[relation.object])
    return " ".join(words).replace("_", " ")


def _without(one: Decompiled, episodes: Collection[EpisodeHash], says: Says) -> Decompiled:
    record = one.record
    kept = tuple(r for r in record.relations if r.episode not in episodes)
    is_cut = len(kept) < len(record.relations)
    needed = {end for r in kept for end in (r.subject, r.object)}
    about = {end for r in record.relations for end in (r.subject, r.object)}
    concepts = [
        _renamed(concept, says)
        for concept in record.concepts
        if concept.hash in needed or (concept.hash not in about and not says(concept.label))
    ]
    used = {r.context for r in kept}
    contexts = [c for c in record.contexts if not is_cut or c.hash in used]
    left = Record(tuple(concepts), tuple(contexts), kept)
    beside = {k: v for k, v in one.metadata.items() if not (is_cut or says(f"{k} {v}"))}
    if left != record:
        beside.pop(RECEIPT, None)
    return Decompiled(left, "" if is_cut or says(one.utterance) else one.utterance, beside)


def _lost_more(before: Decompiled, after: Decompiled) -> bool:
    left = {concept.hash: concept.aliases for concept in after.record.concepts}
    about = {end for r in before.record.relations for end in (r.subject, r.object)}
    return any(
        left.get(concept.hash, concept.aliases if concept.hash in about else None)
        != concept.aliases
        for concept in before.record.concepts
    )


def _renamed(concept: Concept, says: Says) -> Concept:
    """The concept without the aliases that say it."""
    return replace(concept, aliases=tuple(name for name in concept.aliases if not says(name)))


def joined(pieces: Sequence[Piece]) -> str:
    """Their text."""
    return "".join(piece.raw for piece in pieces)
