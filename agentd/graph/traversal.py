"""Walks through the graph: what is reached from some concepts, and on which way. Pure.

Facts are walked both ways, from subject to object and back. Concepts that a walk begins at are not
among those it reaches, but their own facts are. All that comes back is sorted after the search, ties
by hash, so that the same graph always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Self

from agentd.domain.concept import ConceptHash, Edge
from agentd.graph.adjacency import WHOLE, Adjacency, View
from agentd.graph.path import LIMITS, Limits, Path, Step
from agentd.ports import Walk

_ORDER, _NEARNESS = attrgetter("order"), attrgetter("nearness")


@dataclass(frozen=True, slots=True)
class Traversal:
    """What a walk found.

    `reached` holds the best path to each concept, the surest first, at most `Limits.results`.
    `arrivals` holds for every fact that was walked, and each way it was walked, the best path that
    ends with it; a path visits no concept twice, but a fact of a concept about itself is an arrival
    too. `edges` holds every fact that was walked, once. All are sorted, the surest first (but see
    `fewest_hops`).
    """

    seeds: tuple[ConceptHash, ...]
    reached: tuple[Path, ...] = ()
    arrivals: tuple[Path, ...] = ()
    edges: tuple[Edge, ...] = ()

    @classmethod
    def of(
        cls,
        seeds: Iterable[ConceptHash],
        arrivals: Iterable[Path],
        results: int,
        *,
        is_nearest: bool = False,
    ) -> Self:
        """The walk with these arrivals, in any order. `is_nearest`: those of fewer facts come first, then
        the surer ones.
        """
        order = _NEARNESS if is_nearest else _ORDER
        ends = tuple(sorted(arrivals, key=order))
        last = (path.steps[-1].edge for path in ends)
        edges = sorted({edge.fact.value: edge for edge in last}.values(), key=_surest)
        begun = sorted(seeds)
        reached = {
            seed.value: Path.at(seed) for seed in begun
        }  # the first path to each is the best
        for path in ends:
            reached.setdefault(path.end.value, path)
        paths = list(reached.values())[len(begun) :][:results]
        return cls(tuple(begun), tuple(paths), ends, tuple(edges))


def best_paths(
    seeds: Sequence[ConceptHash],
    limits: Limits = LIMITS,
    view: View = WHOLE,
    *,
    preferred: Collection[str] = (),
    hub: ConceptHash | None = None,
) -> Walk[Traversal]:
    """To every concept the path whose product of confidences is the largest, in at most
    `limits.depth` steps. Paths may end at the `hub`, which most is about; they do not lead through it,
    and those that begin there go along `preferred` predicates alone.

    A search by rounds (Bellman and Ford) and no search by priority (Dijkstra): with a bound on the
    depth, the surest path to a concept may be too long to go on from, while a shorter one is not. Facts
    are read once per round.
    """
    return _walk(seeds, limits, view, preferred, hub=hub)


def fewest_hops(
    seeds: Sequence[ConceptHash],
    limits: Limits = LIMITS,
    view: View = WHOLE,
    *,
    preferred: Collection[str] = (),
) -> Walk[Traversal]:
    """To every concept the shortest path, and the surest of those: breadth first. Paths of fewer facts
    come first. Facts are read once per round.
    """
    return _walk(seeds, limits, view, preferred, is_nearest=True)


def along(edges: Iterable[Edge], limits: Limits = LIMITS) -> Traversal:
    """The walk of one step along each of these facts, both ways: without seeds."""
    sure = [edge for edge in edges if edge.confidence >= limits.least]
    steps = [Step(edge, forward) for edge in sure for forward in (True, False)]
    paths = (Path.at(s.source).then(s) for s in steps if s.forward or not s.is_loop)
    return Traversal.of((), paths, limits.results)


def _walk(
    seeds: Sequence[ConceptHash],
    limits: Limits,
    view: View,
    preferred: Collection[str],
    *,
    is_nearest: bool = False,
    hub: ConceptHash | None = None,
) -> Walk[Traversal]:
    is_better = Path.shorter if is_nearest else Path.before
    around = Adjacency(limits, view, preferred=preferred)
    best = {seed.value: Path.at(seed) for seed in sorted(set(seeds))}
    arrivals: dict[tuple[bytes, bool], Path] = {}
    moved = list(best.values())
    for _ in range(limits.depth):
        moved = sorted(moved, key=_ORDER)[: limits.breadth]
        yield from around.load(path.end for path in moved)
        found: dict[bytes, Path] = {}
        for path in _onward(moved, around, hub, preferred):
            key, end = path.steps[-1].key, path.end.value
            if (same := arrivals.get(key)) is None or is_better(path, same):
                arrivals[key] = path
            known = found.get(end) or best.get(end)
            if known is None or is_better(path, known):
                found[end] = path
        best.update(found)
        moved = list(found.values())
    return Traversal.of(set(seeds), arrivals.values(), limits.results, is_nearest=is_nearest)


def _onward(
    paths: Iterable[Path], around: Adjacency, hub: ConceptHash | None, preferred: Collection[str]
) -> Iterator[Path]:
    for path in paths:
        is_hub = path.end == hub
        if is_hub and path.steps:
            continue
        for step in around.steps(path.end):
            if is_hub and step.edge.predicate not in preferred:
                continue
            if not path.visits(step.target) or step.is_loop:
                yield path.then(step)


def _surest(edge: Edge) -> tuple[float, bytes]:
    return -edge.confidence, edge.fact.value
