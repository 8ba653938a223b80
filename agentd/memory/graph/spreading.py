"""Spreading activation: what comes to mind with some concepts, after Collins and Loftus (1975). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from agentd.core.graph import ConceptHash, Edge, FactHash
from agentd.core.ports import Walk
from agentd.memory.graph.paths import LIMITS, ROUNDS, Path, PathLimits, PathStep
from agentd.memory.graph.traversal import WHOLE, Adjacency, Traversal, View

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
