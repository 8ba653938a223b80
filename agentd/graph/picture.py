"""A neighbourhood of the graph as nodes and arrows, to be drawn (agentd/graph/picture_*.py). Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentd.domain.concept import ConceptHash, Edge
from agentd.graph.answer import Table, one_line
from agentd.graph.importance import RankedConcept
from agentd.graph.traversal import Traversal

ARROWS_PER_NODE = 2  # more make a picture that nobody can read


@dataclass(frozen=True, slots=True)
class Node:
    """A concept: `depth` facts away from where the walk began, and its importance, there 1."""

    label: str
    depth: int
    score: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """A fact from one node to another, or the same, by their places in the picture."""

    source: int
    target: int
    predicate: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn. `hidden_nodes` and `hidden_arrows` count what was found and left out; `edges` are
    the facts of the arrows, in their order.
    """

    title: str
    nodes: tuple[Node, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    hidden_nodes: int = 0
    hidden_arrows: int = 0
    edges: tuple[Edge, ...] = field(default=(), compare=False, repr=False)

    @property
    def left_out(self) -> str:
        """What is not shown, in words, or nothing."""
        parts = [(self.hidden_nodes, "concept"), (self.hidden_arrows, "fact")]
        said = [f"{count} more {word}{'s' * (count > 1)}" for count, word in parts if count]
        return f"{' and '.join(said)} not shown" if said else ""

    def as_table(self) -> Table:
        """Headings, and one line of cells for each arrow, the surest first."""
        arrows = sorted(self.arrows, key=lambda a: (-a.confidence, a.source, a.target, a.predicate))
        cells = [
            (
                self.nodes[a.source].label,
                a.predicate,
                self.nodes[a.target].label,
                f"{a.confidence:.2f}",
            )
            for a in arrows
        ]
        return (("subject", "predicate", "object", "confidence"), *cells)


def neighbourhood(
    title: str,
    traversal: Traversal,
    ranked: Sequence[RankedConcept],
    labels: Mapping[ConceptHash, str],
    most: int,
) -> Picture:
    """Where a walk began, and at most `most` other concepts: the highest ranked, each with what lies on
    its path. Arrows are the facts of those paths, and the surest others between the same concepts.
    """
    shown, needed = _shown(traversal, ranked, most)
    inside = [e for e in traversal.edges if e.subject in shown and e.object in shown]
    spare = max(0, ARROWS_PER_NODE * len(shown) - len(needed))
    kept = needed.union([edge for edge in inside if edge not in needed][:spare])
    places = {concept: place for place, concept in enumerate(shown)}
    scores = {one.concept: one.score for one in ranked}
    hops = _hops(traversal)
    nodes = [Node(_label(labels, one), hops[one], scores.get(one, 1.0)) for one in shown]
    edges = tuple(edge for edge in inside if edge in kept)
    arrows = tuple(
        Arrow(places[edge.subject], places[edge.object], one_line(edge.predicate), edge.confidence)
        for edge in edges
    )
    hidden = len(
        {one for edge in traversal.edges for one in (edge.subject, edge.object)} - {*shown}
    )
    unseen = len(traversal.edges) - len(arrows)
    return Picture(one_line(title), tuple(nodes), arrows, hidden, unseen, edges)


def _shown(
    traversal: Traversal, ranked: Iterable[RankedConcept], most: int
) -> tuple[list[ConceptHash], set[Edge]]:
    """The concepts in the picture, and the facts that hold them together."""
    seen = {one for edge in traversal.edges for one in (edge.subject, edge.object)}
    seeds = [seed for seed in traversal.seeds if seed in seen]
    shown = dict.fromkeys(seeds)
    needed: set[Edge] = set()
    for one in ranked:
        new = [step.target for step in one.path.steps if step.target not in shown]
        if len(shown) + len(new) <= len(seeds) + most:
            shown.update(dict.fromkeys(new))
            needed.update(step.edge for step in one.path.steps)
    return list(shown), needed


def _hops(traversal: Traversal) -> dict[ConceptHash, int]:
    """How many facts lie between each concept and where the walk began."""
    beside: defaultdict[ConceptHash, set[ConceptHash]] = defaultdict(set)
    for edge in traversal.edges:
        beside[edge.subject].add(edge.object)
        beside[edge.object].add(edge.subject)
    hops = dict.fromkeys(traversal.seeds, 0)
    waiting = deque(traversal.seeds)
    while waiting:
        here = waiting.popleft()
        for there in beside[here] - hops.keys():
            hops[there] = hops[here] + 1
            waiting.append(there)
    return hops


def _label(labels: Mapping[ConceptHash, str], concept: ConceptHash) -> str:
    return one_line(labels.get(concept, f"#{concept.hex[:8]}"))
