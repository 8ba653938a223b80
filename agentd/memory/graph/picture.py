"""A neighbourhood of the graph as nodes and arrows, drawn by agentd/memory/graph/drawing.py; and
the history of facts: how often they were said, since when, and whether they last. Pure.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from agentd.core.evidence import Trace, independent, read_evidence
from agentd.core.graph import ConceptHash, Edge, FactHash
from agentd.memory.graph.answer import Table, one_line
from agentd.memory.graph.paths import Path, TraversalMode
from agentd.memory.graph.traversal import Traversal

ARROWS_PER_NODE = 2  # more would make an unreadable picture
_HISTORY = ("said", "denied", "promoted", "first", "last", "memory")


SEMANTIC, EPISODIC = "semantic", "episodic"


@dataclass(frozen=True, slots=True)
class FactHistory:
    """How a fact came to be known.

    `said` is the number of independent sayings of it: those of one context count once, as do all of
    another agent; sayings that faded after a promotion count with it. `denied` is the number
    against it. `first` and `last` are the times of the first and last saying. The fact `stands` if
    an episode that does not fade states it: then it belongs to semantic memory, else to episodic
    memory.
    """

    said: int
    denied: int
    promoted: int
    first: datetime
    last: datetime
    stands: bool

    @property
    def memory(self) -> str:
        """The kind of memory the fact belongs to."""
        return SEMANTIC if self.stands else EPISODIC


def histories(traces: Iterable[Trace]) -> Mapping[FactHash, FactHistory]:
    """Return the history of each fact with these episodes. A duplicate episode counts once."""
    by_fact: dict[FactHash, list[Trace]] = {}
    for trace in {trace.relation.episode: trace for trace in traces}.values():
        by_fact.setdefault(trace.relation.fact, []).append(trace)
    return {fact: _history(found) for fact, found in by_fact.items()}


def _history(traces: list[Trace]) -> FactHistory:
    times = [at for trace in traces for at in _times(trace)]
    counting = independent(traces, lambda trace: trace.weight)
    return FactHistory(
        said=sum(_count(trace) for trace in counting if not trace.relation.denied),
        denied=sum(_count(trace) for trace in counting if trace.relation.denied),
        promoted=sum(one.observations for one in traces if one.is_promotion),
        first=min(times),
        last=max(times),
        stands=any(trace.stands and not trace.relation.denied for trace in traces),
    )


def _count(trace: Trace) -> int:
    """Return how many sayings an episode adds: a promoted one adds none, because its promotion
    counts it.
    """
    return trace.observations - trace.is_promoted


def _times(trace: Trace) -> list[datetime]:
    if not trace.is_promotion:
        return [trace.said]
    return [trace.said, *(read_evidence(ref)[1] for ref in trace.relation.refs)]


@dataclass(frozen=True, slots=True)
class PictureNode:
    """A concept, `depth` facts away from the start of the walk, with its score (1 at the start)."""

    label: str
    depth: int
    score: float


@dataclass(frozen=True, slots=True)
class Arrow:
    """A fact from one node to another, or to itself, by indices in the picture. `history` is None
    until it is added, and if the fact was erased meanwhile.
    """

    source: int
    target: int
    predicate: str
    confidence: float
    history: FactHistory | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn; `by` is the way it was found, which defines the scores. `hidden_nodes` and
    `hidden_arrows` count what was found and left out; `edges` are the facts of the arrows, in the
    same order.
    """

    title: str
    nodes: tuple[PictureNode, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    hidden_nodes: int = 0
    hidden_arrows: int = 0
    by: TraversalMode = TraversalMode.PATHS
    edges: tuple[Edge, ...] = field(default=(), compare=False, repr=False)

    @property
    def left_out(self) -> str:
        """What is not shown, in words; "" if everything is."""
        parts = [(self.hidden_nodes, "concept"), (self.hidden_arrows, "fact")]
        said = [f"{count} more {word}{'s' * (count > 1)}" for count, word in parts if count]
        return f"{' and '.join(said)} not shown" if said else ""

    def with_history(self, histories: Mapping[FactHash, FactHistory]) -> Picture:
        """Return the picture with the histories of its facts."""
        both = zip(self.arrows, self.edges, strict=True)
        arrows = (replace(arrow, history=histories.get(edge.fact)) for arrow, edge in both)
        return replace(self, arrows=tuple(arrows))

    def as_table(self) -> Table:
        """Return the headings, and one line of cells for each arrow, the surest first; with
        histories if there are any.
        """
        arrows = sorted(self.arrows, key=lambda a: (-a.confidence, a.source, a.target, a.predicate))
        told = any(arrow.history for arrow in arrows)
        heads = ("subject", "predicate", "object", "confidence", *(_HISTORY if told else ()))
        return (heads, *(self._cells(arrow)[: len(heads)] for arrow in arrows))

    def _cells(self, arrow: Arrow) -> tuple[str, ...]:
        ends = self.nodes[arrow.source].label, self.nodes[arrow.target].label
        fact = (ends[0], arrow.predicate, ends[1], f"{arrow.confidence:.2f}")
        if (history := arrow.history) is None:
            return (*fact, *("" for _ in _HISTORY))
        times = f"{history.first:%Y-%m-%d}", f"{history.last:%Y-%m-%d}"
        counts = str(history.said), str(history.denied), str(history.promoted)
        return (*fact, *counts, *times, history.memory)


def neighbourhood(
    title: str,
    traversal: Traversal,
    ranked: Sequence[tuple[Path, float]],
    labels: Mapping[ConceptHash, str],
    most: int,
    by: TraversalMode = TraversalMode.PATHS,
) -> Picture:
    """Build a picture of the start of a walk and at most `most` other concepts: the first of those
    `ranked` by path and score, each with the concepts on its path. Arrows are the facts of those
    paths, and the surest others between the same concepts.
    """
    shown, needed = _select(traversal, ranked, most)
    inside = [e for e in traversal.edges if e.subject in shown and e.object in shown]
    spare = max(0, ARROWS_PER_NODE * len(shown) - len(needed))
    kept = needed.union([edge for edge in inside if edge not in needed][:spare])
    places = {concept: place for place, concept in enumerate(shown)}
    scores = {path.end: score for path, score in ranked}
    hops = _hops(traversal)
    nodes = [PictureNode(_label(labels, one), hops[one], scores.get(one, 1.0)) for one in shown]
    edges = tuple(edge for edge in inside if edge in kept)
    arrows = tuple(
        Arrow(places[edge.subject], places[edge.object], one_line(edge.predicate), edge.confidence)
        for edge in edges
    )
    hidden = len(
        {one for edge in traversal.edges for one in (edge.subject, edge.object)} - {*shown}
    )
    unseen = len(traversal.edges) - len(arrows)
    return Picture(one_line(title), tuple(nodes), arrows, hidden, unseen, by, edges)


def _select(
    traversal: Traversal, ranked: Iterable[tuple[Path, float]], most: int
) -> tuple[list[ConceptHash], set[Edge]]:
    """Return the concepts in the picture, and the facts of their paths."""
    seen = {one for edge in traversal.edges for one in (edge.subject, edge.object)}
    seeds = [seed for seed in traversal.seeds if seed in seen]
    shown = dict.fromkeys(seeds)
    needed: set[Edge] = set()
    for path, _ in ranked:
        new = [step.target for step in path.steps if step.target not in shown]
        if len(shown) + len(new) <= len(seeds) + most:
            shown.update(dict.fromkeys(new))
            needed.update(step.edge for step in path.steps)
    return list(shown), needed


def _hops(traversal: Traversal) -> dict[ConceptHash, int]:
    """Return how many facts lie between each concept and the start of the walk."""
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
