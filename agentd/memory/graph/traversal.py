"""Walks through the graph: which concepts are reached from some concepts, and by which path. Pure.

Facts are walked in both directions. The seeds of a walk are not among the concepts it reaches, but
their own facts are. Results are sorted after the search, ties by hash, so the same graph always
gives the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Self

from msgspec import Struct

from agentd.core.graph import ConceptHash, Edge, NeighbourQuery
from agentd.core.ports import Walk
from agentd.memory.graph.paths import LIMITS, Path, PathLimits, PathStep

_ORDER, _NEARNESS = attrgetter("order"), attrgetter("nearness")


class GraphView(Struct, frozen=True):
    """The visible part of the graph: the facts of these audiences (None: of all), with their
    confidence at `now` (None: as they were said).
    """

    scopes: Sequence[str] | None = None
    now: datetime | None = None


WHOLE = GraphView()


class Adjacency:
    """The facts around concepts, read once for each concept.

    `preferred` are the predicates that a question is about: another `fanout` of their facts are
    taken per concept, so that many other facts do not hide them.
    """

    def __init__(
        self,
        limits: PathLimits,
        view: GraphView = WHOLE,
        *,
        preferred: Collection[str] = (),
    ) -> None:
        self._limits = limits
        self._view = view
        self._preferred = frozenset(preferred)
        self._steps: dict[bytes, tuple[PathStep, ...]] = {}

    def load(
        self, concepts: Iterable[ConceptHash]
    ) -> Generator[NeighbourQuery, Sequence[Edge], None]:
        """Request the facts about the concepts that were not loaded yet, in one request or none."""
        wanted = {c.value: c for c in concepts if c.value not in self._steps}
        if not wanted:
            return
        view, about = self._view, sorted(self._preferred)
        edges = yield NeighbourQuery(
            [*wanted.values()], view.scopes, view.now, self._limits.fanout, about
        )
        for concept, steps in _around(wanted, edges, self._limits.least).items():
            self._steps[concept] = self._chosen(steps)

    def steps(self, concept: ConceptHash) -> tuple[PathStep, ...]:
        """Return the steps from a loaded concept. A fact about itself is one step."""
        return self._steps[concept.value]

    def _chosen(self, steps: list[PathStep]) -> tuple[PathStep, ...]:
        most = self._limits.fanout
        if len(steps) <= most:
            return tuple(steps)
        steps.sort(key=_surest_step)
        about = [step for step in steps if step.edge.predicate in self._preferred][:most]
        return tuple(
            sorted({step.key: step for step in (*steps[:most], *about)}.values(), key=_surest_step)
        )


def _around(
    concepts: Iterable[bytes], edges: Iterable[Edge], least: float
) -> dict[bytes, list[PathStep]]:
    """Return the steps from each concept along facts that are sure enough."""
    found: dict[bytes, list[PathStep]] = {concept: [] for concept in concepts}
    for edge in edges:
        if edge.confidence < least:
            continue
        subject, target = edge.subject.value, edge.object.value
        if (out := found.get(subject)) is not None:
            out.append(PathStep(edge, True))
        if target != subject and (back := found.get(target)) is not None:
            back.append(PathStep(edge, False))
    return found


class Traversal(Struct, frozen=True):
    """The result of a walk.

    `reached` holds the best path to each concept, the surest first, at most `PathLimits.results`.
    `arrivals` holds for every walked fact and direction the best path that ends with it; a path
    visits no concept twice, except that a fact of a concept about itself is an arrival, too.
    `edges` holds every walked fact once. All are sorted, the surest first (but see `fewest_hops`).
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
        """Build the result from arrivals in any order. With `is_nearest`, paths of fewer facts come
        first, then the surer ones.
        """
        order = _NEARNESS if is_nearest else _ORDER
        ends = tuple(sorted(arrivals, key=order))
        last = (path.steps[-1].edge for path in ends)
        edges = sorted({edge.fact.value: edge for edge in last}.values(), key=_surest)
        begun = sorted(seeds)
        reached = {
            seed.value: Path.at(seed) for seed in begun
        }  # the first path to each concept is the best one
        for path in ends:
            reached.setdefault(path.end.value, path)
        paths = list(reached.values())[len(begun) :][:results]
        return cls(tuple(begun), tuple(paths), ends, tuple(edges))


def best_paths(
    seeds: Sequence[ConceptHash],
    limits: PathLimits = LIMITS,
    view: GraphView = WHOLE,
    *,
    preferred: Collection[str] = (),
    hub: ConceptHash | None = None,
) -> Walk[Traversal]:
    """Walk to every concept by the path with the largest product of confidences, within
    `limits.depth` steps. Paths may end at the `hub`, the concept that most facts are about, but do
    not lead through it; those that begin there use `preferred` predicates only.

    The search goes by rounds (Bellman-Ford) and not by priority (Dijkstra): with a bound on the
    depth, the surest path to a concept may be too long to continue while a shorter one is not.
    Facts are read once per round.
    """
    return _walk(seeds, limits, view, preferred, hub=hub)


def fewest_hops(
    seeds: Sequence[ConceptHash],
    limits: PathLimits = LIMITS,
    view: GraphView = WHOLE,
    *,
    preferred: Collection[str] = (),
) -> Walk[Traversal]:
    """Walk to every concept by the shortest path, of several the surest: breadth first. Paths of
    fewer facts come first. Facts are read once per round.
    """
    return _walk(seeds, limits, view, preferred, is_nearest=True)


def along(edges: Iterable[Edge], limits: PathLimits = LIMITS) -> Traversal:
    """Return the walk of one step along each of these facts, in both directions; it has no
    seeds.
    """
    sure = [edge for edge in edges if edge.confidence >= limits.least]
    steps = [PathStep(edge, forward) for edge in sure for forward in (True, False)]
    paths = (Path.at(s.source).then(s) for s in steps if s.forward or not s.is_loop)
    return Traversal.of((), paths, limits.results)


def _walk(
    seeds: Sequence[ConceptHash],
    limits: PathLimits,
    view: GraphView,
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


def _surest_step(step: PathStep) -> tuple[float, float, bytes]:
    edge = step.edge
    return -edge.confidence, -edge.newest.timestamp(), edge.fact.value
