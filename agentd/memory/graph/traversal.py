"""Walks through the graph: what is reached from some concepts, and on which way. Pure.

Facts are walked both ways, from subject to object and back. Concepts that a walk begins at are not
among those it reaches, but their own facts are. All that comes back is sorted after the search, ties
by hash, so that the same graph always gives the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Self

from agentd.core.graph import ConceptHash, Edge, FactHash
from agentd.core.ports import Walk
from agentd.memory.graph.paths import (
    LIMITS,
    ROUNDS,
    WHOLE,
    Adjacency,
    Path,
    PathLimits,
    PathStep,
    View,
)

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
    limits: PathLimits = LIMITS,
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
    limits: PathLimits = LIMITS,
    view: View = WHOLE,
    *,
    preferred: Collection[str] = (),
) -> Walk[Traversal]:
    """To every concept the shortest path, and the surest of those: breadth first. Paths of fewer facts
    come first. Facts are read once per round.
    """
    return _walk(seeds, limits, view, preferred, is_nearest=True)


def along(edges: Iterable[Edge], limits: PathLimits = LIMITS) -> Traversal:
    """The walk of one step along each of these facts, both ways: without seeds."""
    sure = [edge for edge in edges if edge.confidence >= limits.least]
    steps = [PathStep(edge, forward) for edge in sure for forward in (True, False)]
    paths = (Path.at(s.source).then(s) for s in steps if s.forward or not s.is_loop)
    return Traversal.of((), paths, limits.results)


def _walk(
    seeds: Sequence[ConceptHash],
    limits: PathLimits,
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


# Spreading activation: what comes to mind with some concepts, after Collins and Loftus (1975). Pure.

DECAY = 0.5  # of what a fact passes on
THRESHOLD = 0.05  # activation from which on a concept passes it on


@dataclass(frozen=True, slots=True)
class Activation:
    """Where activation came to, and how much.

    `levels` is the activation of every concept that has at least 0.05, in (0, 1], the highest first.
    `traversal` tells the ways: `reached` holds for each of these the path that most of it came by,
    `arrivals` for every fact that passed activation on to one of these, and each way it did, the path
    that ends with it, both the most first; no path visits a concept twice. `edges` are the facts about
    all that passed activation on.
    """

    levels: Mapping[ConceptHash, float]
    traversal: Traversal
    passed: Mapping[tuple[bytes, bool], float]

    def score(self, path: Path) -> float:
        """The activation of where one of the paths ends, in [0.05, 1]."""
        return self.levels[path.end]

    def fact(self, path: Path) -> float:
        """What the last fact of one of the paths passed on, in [0, 0.5]."""
        return self.passed[path.steps[-1].key]


def spread(
    seeds: Sequence[ConceptHash],
    limits: PathLimits = LIMITS,
    view: View = WHOLE,
    *,
    rounds: int = ROUNDS,
    preferred: Collection[str] = (),
) -> Walk[Activation]:
    """What is activated where seeds have 1.

    In each of at most `rounds` rounds, the concepts that have 0.05 and have not passed it on yet do so,
    all at once: `a_j += a_i · confidence · 0.5`, at most 1. A fact carries activation once, both ways
    only if both its ends pass on in the same round: there is no echo, and the work ends. Of `limits`,
    `least`, `fanout` and `breadth` count, and `results` for what is reached. Facts are read once per
    round.
    """
    around = Adjacency(limits, view, preferred=preferred)
    spreading = _Spreading(seeds)
    for _ in range(rounds):
        firing = spreading.firing()[: limits.breadth]
        if not firing:
            break
        yield from around.load(firing)
        spreading.fire([(one, around.steps(one)) for one in firing])
    return spreading.ended(limits.results)


class _Spreading:
    """Activation on its way."""

    def __init__(self, seeds: Iterable[ConceptHash]) -> None:
        self._active = dict.fromkeys(sorted(set(seeds)), 1.0)
        self._best = {seed: (inf, Path.at(seed)) for seed in self._active}
        self._fired: set[ConceptHash] = set()
        self._edges: dict[FactHash, Edge] = {}  # of what has fired
        self._spent: set[FactHash] = set()
        self._arrived: list[tuple[float, Path]] = []

    def firing(self) -> list[ConceptHash]:
        """What is to pass on next, the most active first."""
        return [one for one in _highest(self._active) if one not in self._fired]

    def fire(self, around: Sequence[tuple[ConceptHash, Sequence[PathStep]]]) -> None:
        """Let these pass on along their facts, all at once."""
        carried = [
            (self._active[one] * step.edge.confidence * DECAY, self._best[one][1], step)
            for one, steps in around
            for step in steps
            if not step.is_loop and step.edge.fact not in self._spent
        ]
        for gain, way, step in carried:
            target = step.target
            self._active[target] = min(1.0, self._active.get(target, 0.0) + gain)
            self._spent.add(step.edge.fact)
            if not way.visits(target):
                self._arrive(gain, way.then(step))
        for one, steps in around:
            self._fired.add(one)
            self._edges.update((step.edge.fact, step.edge) for step in steps)

    def ended(self, results: int) -> Activation:
        """What came of it."""
        levels = {one: self._active[one] for one in _highest(self._active)}
        paths = (self._best[one][1] for one in levels)
        reached = tuple(path for path in paths if path.steps)[:results]
        arrived = sorted(self._arrived, key=lambda one: (-one[0], one[1].order))
        passed = {path.steps[-1].key: gain for gain, path in arrived}
        arrivals = tuple(path for _, path in arrived if path.end in levels)
        edges = sorted(self._edges.values(), key=lambda edge: (-edge.confidence, edge.fact))
        seeds = tuple(one for one, (gain, _) in self._best.items() if gain == inf)
        return Activation(levels, Traversal(seeds, reached, arrivals, tuple(edges)), passed)

    def _arrive(self, gain: float, path: Path) -> None:
        self._arrived.append((gain, path))
        known = self._best.get(path.end)
        if known is None or gain > known[0] or (gain == known[0] and path.before(known[1])):
            self._best[path.end] = gain, path


def _highest(active: Mapping[ConceptHash, float]) -> list[ConceptHash]:
    """Those above the threshold, the most active first."""
    above = [one for one, activation in active.items() if activation >= THRESHOLD]
    return sorted(above, key=lambda one: (-active[one], one))
