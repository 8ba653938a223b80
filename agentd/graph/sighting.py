"""Whether a text of the graph may hold what is looked for, told without reading it as a graph. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from agentd.domain.belief import CONSOLIDATION
from agentd.domain.concept import Concept, ConceptHash, EpisodeHash, Relation
from agentd.domain.erasure import Needles
from agentd.graph.hashing import episode_hash, fact_hash

MOST = 50  # episodes that are looked for one by one

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sighting:
    """What is looked for: episodes by their labels and predicates, what needles find, and every
    promotion. `words` is None where those of an episode are not known, or these are many.

    Whatever a graph says stands in its text as it is, unless something is escaped there: no operation
    that a memory may use makes one string of others.
    """

    words: tuple[Words, ...] | None = None
    needles: Needles | None = None

    @classmethod
    def of(
        cls,
        episodes: Collection[EpisodeHash],
        relations: Mapping[EpisodeHash, Relation],
        concepts: Mapping[ConceptHash, Concept],
        needles: Needles | None,
    ) -> Self:
        """That of these episodes, as far as relations and concepts tell what they say."""
        if len(episodes) > MOST:
            return cls(None, needles)
        found = [_words(name, relations.get(name), concepts) for name in episodes]
        known = tuple(words for words in found if words is not None)
        return cls(known if len(known) == len(found) else None, needles)

    def may_be_in(self, raw: str) -> bool:
        """Whether some of it may stand in the text; False is sure."""
        if self.words is None or "\\" in raw or CONSOLIDATION in raw:
            return True
        if any(all(word in raw for word in words) for words in self.words):
            return True
        return self.needles is not None and self.needles.conceivable(raw)


def _words(
    name: EpisodeHash, relation: Relation | None, concepts: Mapping[ConceptHash, Concept]
) -> Words | None:
    """The labels and the predicate, the longest first, if these are what the episode is named by."""
    if relation is None or not {relation.subject, relation.object} <= concepts.keys():
        return None
    subject, target = concepts[relation.subject].label, concepts[relation.object].label
    fact = fact_hash(subject, relation.predicate, target)
    if episode_hash(fact, relation.context) != name:
        return None
    return tuple(sorted((subject, relation.predicate, target), key=len, reverse=True))
