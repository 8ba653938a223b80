"""Spreading activation from some concepts, after Collins and Loftus (1975). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf

from msgspec import Struct

from agentd.core.graph import ConceptHash, Edge, FactHash
from agentd.core.ports import Walk
from agentd.memory.graph.paths import LIMITS, ROUNDS, Path, PathLimits, PathStep
from agentd.memory.graph.traversal import WHOLE, Adjacency, GraphView, Traversal

DECAY = 0.5  # factor for each fact that passes activation on
THRESHOLD = 0.05  # least activation with which a concept passes it on


class Activation(Struct, frozen=True):
    """The result of spreading.

    `levels` is the activation of every concept with at least 0.05, in (0, 1], highest first.
    `passed` is how much each fact passed on, by fact and direction.

    In `traversal`, `reached` holds for each of these concepts the path by which most activation
    came; `arrivals` holds for every fact that passed activation to one of them, and each direction,
    the path that ends with it; both are sorted by activation, and no path visits a concept twice.
    `edges` are the facts about all concepts that passed activation on.
    """

    levels: Mapping[ConceptHash, float]
    traversal: Traversal
    passed: Mapping[tuple[bytes, bool], float]

    def score(self, path: Path) -> float:
        """Return the activation of a path's end, in [0.05, 1]."""
        return self.levels[path.end]

    def fact(self, path: Path) -> float:
        """Return how much the last fact of a path passed on, in [0, 0.5]."""
        return self.passed[path.steps[-1].key]


def spread(
    seeds: Sequence[ConceptHash],
    limits: PathLimits = LIMITS,
    view: GraphView = WHOLE,
    *,
    rounds: int = ROUNDS,
    preferred: Collection[str] = (),
) -> Walk[Activation]:
    """Spread activation from seeds, which have 1.

    In each of at most `rounds` rounds all concepts that have at least 0.05 and have not passed it
    on yet do so at once: `a_j += a_i · confidence · 0.5`, at most 1. A fact carries activation
    once; in both directions only if both of its ends pass on in the same round. So there is no
    echo, and spreading terminates. Of `limits`, `least`, `fanout` and `breadth` apply, and
    `results` to what is reached. Facts are read once per round.
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
    """The state of spreading."""

    def __init__(self, seeds: Iterable[ConceptHash]) -> None:
        self._active = dict.fromkeys(sorted(set(seeds)), 1.0)
        self._best = {seed: (inf, Path.at(seed)) for seed in self._active}
        self._fired: set[ConceptHash] = set()
        self._edges: dict[FactHash, Edge] = {}  # facts of the concepts that have fired
        self._spent: set[FactHash] = set()
        self._arrived: list[tuple[float, Path]] = []

    def firing(self) -> list[ConceptHash]:
        """Return the concepts that pass on next, the most active first."""
        return [one for one in _highest(self._active) if one not in self._fired]

    def fire(self, around: Sequence[tuple[ConceptHash, Sequence[PathStep]]]) -> None:
        """Let these concepts pass on activation along their facts, all at once."""
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
        """Return the result."""
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
    """Return the concepts above the threshold, the most active first."""
    above = [one for one, activation in active.items() if activation >= THRESHOLD]
    return sorted(above, key=lambda one: (-active[one], one))
