"""The importance of a concept for a question: confidence, recency, frequency and connectivity
combined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import log1p

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.graph import ConceptHash, Edge
from agentd.memory.graph.paths import Path
from agentd.memory.graph.traversal import Traversal

HALF_LIFE = timedelta(days=7)


class ImportanceWeights(Struct, frozen=True):
    """The weights of the parts. Raises ValueError unless they are non-negative and sum to 1."""

    confidence: float = 0.35
    recency: float = 0.25
    frequency: float = 0.20
    connectivity: float = 0.20

    def __post_init__(self) -> None:
        parts = (self.confidence, self.recency, self.frequency, self.connectivity)
        if min(parts) < 0 or abs(sum(parts) - 1) > 1e-9:
            raise ValueError("the weights of importance are at least 0, and their sum is 1")


WEIGHTS = ImportanceWeights()


class ImportanceParts(Struct, frozen=True):
    """The parts of a score, each in [0, 1].

    `confidence` is that of the path. `recency` is 2^(−age / 7 days) of the newest episode among the
    facts seen about the concept; a future time counts as new. `frequency` is log(1 + episodes) /
    log(1 + most episodes), `connectivity` log(1 + facts) / log(1 + most facts), where "most" is the
    maximum over the concepts the walk reached; both are 0 if nothing was seen. Facts are those the
    walk saw: more for near concepts than for those at its edge.
    """

    confidence: float
    recency: float
    frequency: float
    connectivity: float

    def score(self, weights: ImportanceWeights = WEIGHTS) -> float:
        """Return the weighted sum, in [0, 1]."""
        return (
            weights.confidence * self.confidence
            + weights.recency * self.recency
            + weights.frequency * self.frequency
            + weights.connectivity * self.connectivity
        )


class RankedConcept(Struct, frozen=True):
    """A concept that was reached; `facts` are those seen about it, the surest first."""

    concept: ConceptHash
    score: float
    depth: int
    facts: tuple[Edge, ...]
    path: Path
    parts: ImportanceParts


class _Seen(Struct):
    """What a walk saw of a concept."""

    newest: datetime
    facts: int
    episodes: int


class Importance:
    """Scores what one walk found, as of one time."""

    def __init__(
        self, traversal: Traversal, now: datetime, weights: ImportanceWeights = WEIGHTS
    ) -> None:
        self._now = now
        self._weights = weights
        self._edges = traversal.edges
        self._facts: dict[bytes, list[Edge]] | None = None
        self._seen = _count_ends(traversal.edges)
        begun = {seed.value for seed in traversal.seeds}
        others = [seen for one, seen in self._seen.items() if one not in begun]
        self._facts_of_most = _Shares(max((seen.facts for seen in others), default=0))
        self._said_of_most = _Shares(max((seen.episodes for seen in others), default=0))
        self._episodes_of_most = _Shares(
            max((edge.episodes for edge in traversal.edges), default=0)
        )
        self._rest: dict[bytes, float] = {}  # scores without the path's part

    def concept(self, path: Path) -> RankedConcept:
        """Return the concept at a path's end, scored by that path."""
        if self._facts is None:
            self._facts = _by_concept(self._edges)
        parts = replace(self._parts(path.end), confidence=path.confidence)
        facts = tuple(self._facts.get(path.end.value, ()))
        score = parts.score(self._weights)
        return RankedConcept(path.end, score, path.depth, facts, path, parts)

    def score(self, path: Path) -> float:
        """Return only the score of `concept`."""
        rest = self._rest.get(path.end.value)
        if rest is None:
            rest = self._rest[path.end.value] = self._score_of(path.end.value)
        return rest + self._weights.confidence * path.confidence

    def fact(self, path: Path) -> float:
        """Return the score of a path's last fact: recency and frequency are the fact's own, the
        rest as for the concept.
        """
        edge = path.steps[-1].edge
        seen = self._seen.get(path.end.value)
        parts = ImportanceParts(
            path.confidence,
            recency(edge.newest, self._now),
            self._episodes_of_most[edge.episodes],
            self._facts_of_most[seen.facts] if seen else 0.0,
        )
        return parts.score(self._weights)

    def _score_of(self, concept: bytes) -> float:
        """Return the weighted sum of the parts that do not depend on a path."""
        weights = self._weights
        if (seen := self._seen.get(concept)) is None:
            return 0.0
        return (
            weights.recency * recency(seen.newest, self._now)
            + weights.frequency * self._said_of_most[seen.episodes]
            + weights.connectivity * self._facts_of_most[seen.facts]
        )

    def _parts(self, concept: ConceptHash) -> ImportanceParts:
        """Return the parts that do not depend on a path."""
        if (seen := self._seen.get(concept.value)) is None:
            return ImportanceParts(0.0, 0.0, 0.0, 0.0)
        return ImportanceParts(
            0.0,
            recency(seen.newest, self._now),
            self._said_of_most[seen.episodes],
            self._facts_of_most[seen.facts],
        )


def rank(
    traversal: Traversal, now: datetime, weights: ImportanceWeights = WEIGHTS
) -> tuple[RankedConcept, ...]:
    """Return the concepts that a walk reached, the most important first; ties by depth, then by
    hash.
    """
    importance = Importance(traversal, now, weights)
    ranked = [importance.concept(path) for path in traversal.reached]
    return tuple(sorted(ranked, key=lambda one: (-one.score, one.depth, one.concept)))


def recency(newest: datetime, now: datetime) -> float:
    """Return 2^(−age / 7 days), 1 for a time in the future."""
    return 1.0 if newest >= now else float(0.5 ** ((now - newest) / HALF_LIFE))


class _Shares(dict[int, float]):
    """Maps a count to its log-scaled share of the maximum, 0 to 1; each is computed once."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, count: int) -> float:
        if self._most <= 0:
            return 0.0
        share = 1.0 if count >= self._most else log1p(count) / log1p(self._most)
        self[count] = share
        return share


def _count_ends(edges: Iterable[Edge]) -> dict[bytes, _Seen]:
    found: dict[bytes, _Seen] = {}
    for _, subject, _, target, _, episodes, newest in edges:
        ends = subject.value, target.value
        for end in ends if ends[0] != ends[1] else ends[:1]:
            if (seen := found.get(end)) is None:
                found[end] = _Seen(newest, 1, episodes)
                continue
            seen.facts += 1
            seen.episodes += episodes
            seen.newest = max(seen.newest, newest)
    return found


def _by_concept(edges: Iterable[Edge]) -> dict[bytes, list[Edge]]:
    found: defaultdict[bytes, list[Edge]] = defaultdict(list)
    for edge in edges:
        subject, target = edge.subject.value, edge.object.value
        found[subject].append(edge)
        if target != subject:
            found[target].append(edge)
    return found
