"""The results of a walk for one kind of question, with scores: the step between paths and rows.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from agentd.core.graph import Concept, ConceptHash, Edge
from agentd.memory.graph.answer import AnswerRow, AnswerTriple, Hop
from agentd.memory.graph.conditions import Fields
from agentd.memory.graph.paths import Path, PathStep, TraversalMode
from agentd.memory.graph.query import QuestionKind
from agentd.memory.graph.traversal import Traversal

Names = Mapping[bytes, frozenset[str]]  # all names of concepts, by hash

_NAMELESS: Final = frozenset[str]()


class Scores(Protocol):
    """Scores of paths by one way of recall, in [0, 1]."""

    def score(self, path: Path) -> float:
        """Return the score of the path, or of the concept at its end."""

    def fact(self, path: Path) -> float:
        """Return the score of the path's last fact."""


class Labels:
    """The labels of concepts; a concept that was deleted meanwhile is shown by its hash."""

    def __init__(self, labels: Mapping[ConceptHash, str]) -> None:
        self._labels = {one.value: label for one, label in labels.items()}

    def label(self, concept: ConceptHash) -> str:
        """Return the label of a concept."""
        known = self._labels.get(concept.value)
        return known if known is not None else f"#{concept.hex[:8]}"


def spellings(concept: Concept) -> frozenset[str]:
    """Return all names of a concept: its label, and its aliases in lower case."""
    return frozenset((concept.label, *(alias.casefold() for alias in concept.aliases)))


class GraphFound(NamedTuple):
    """A found path, the kind of row it becomes, and its score."""

    kind: QuestionKind
    path: Path
    score: float

    @property
    def edge(self) -> Edge:
        """The last fact of the path."""
        return self.path.steps[-1].edge

    @property
    def confidence(self) -> float:
        """The confidence of the path, or of the fact if facts were asked for."""
        return self.edge.confidence if self.kind is QuestionKind.FACT else self.path.confidence

    def fields(self, names: Names) -> Fields:
        """Return a function from the fields of a question to their values here, given the names of
        concepts.
        """
        return lambda field: self._field(field, names)

    def _field(self, field: str, names: Names) -> str | float | frozenset[str]:
        edge = self.edge
        match field:
            case "label":
                return names.get(self.path.end.value, _NAMELESS)
            case "subject":
                return names.get(edge.subject.value, _NAMELESS)
            case "object":
                return names.get(edge.object.value, _NAMELESS)
            case "start":
                return names.get(self.path.start.value, _NAMELESS)
            case "predicate":
                return edge.predicate
            case "direction":
                return self.path.steps[-1].direction
            case _:
                return self._number(field)

    def _number(self, field: str) -> float:
        numbers = {
            "confidence": self.confidence,
            "score": self.score,
            "depth": self.path.depth,
            "episodes": self.edge.episodes,
        }
        return numbers[field]


def candidates(kind: QuestionKind, traversal: Traversal, scores: Scores) -> list[GraphFound]:
    """Return everything of this kind that a walk found, before any condition is applied: a concept
    once for each arrival, a fact once for each direction. Paths may end at a seed, but a seed does
    not count as a found concept.
    """
    if kind is QuestionKind.FACT:
        return [GraphFound(kind, path, scores.fact(path)) for path in traversal.arrivals]
    ends = {seed.value for seed in traversal.seeds} if kind is QuestionKind.CONCEPT else set()
    paths = (p for p in traversal.arrivals if p.end.value not in ends and not p.steps[-1].is_loop)
    return [GraphFound(kind, path, scores.score(path)) for path in paths]


def best(found: Iterable[GraphFound], by: TraversalMode = TraversalMode.PATHS) -> list[GraphFound]:
    """Return each concept or fact once, by its best path, highest score first; for BREADTH fewest
    facts first. Ties keep the order of paths. `found` must be in the order of its paths.
    """
    kept: dict[bytes, GraphFound] = {}
    for one in found:
        kept.setdefault(_identity(one), one)
    rows = sorted(kept.values(), key=lambda one: -one.score)
    return sorted(rows, key=lambda one: one.path.depth) if by is TraversalMode.BREADTH else rows


def concepts_of(found: Iterable[GraphFound]) -> list[ConceptHash]:
    """Return all concepts on the paths, and both ends of their last facts, each once."""
    seen: dict[bytes, ConceptHash] = {}
    for one in found:
        seen[one.path.start.value] = one.path.start
        for step in one.path.steps:
            for end in (step.edge.subject, step.edge.object):
                seen[end.value] = end
    return list(seen.values())


def rows(found: Iterable[GraphFound], labels: Labels) -> tuple[AnswerRow, ...]:
    """Return the rows of what was found."""
    hops: dict[tuple[bytes, bool], Hop] = {}  # shared, because paths have common beginnings

    def hop(step: PathStep) -> Hop:
        if (known := hops.get(step.key)) is None:
            known = hops[step.key] = _hop(step, labels)
        return known

    return tuple(
        AnswerRow(
            labels.label(one.path.start),
            labels.label(one.path.end),
            tuple(map(hop, one.path.steps)),
            one.confidence,
            one.score,
        )
        for one in found
    )


def _identity(found: GraphFound) -> bytes:
    match found.kind:
        case QuestionKind.CONCEPT:
            return found.path.end.value
        case QuestionKind.FACT:
            return found.edge.fact.value
        case QuestionKind.PATH:
            return b"".join((*found.path.visited, found.path.trail))


def _hop(step: PathStep, labels: Labels) -> Hop:
    edge = step.edge
    subject, obj = labels.label(edge.subject), labels.label(edge.object)
    triple = AnswerTriple(
        edge.fact, subject, edge.predicate, obj, edge.confidence, edge.episodes, edge.newest
    )
    return Hop(triple, step.direction)
