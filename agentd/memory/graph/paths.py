"""Ways through the graph, and the neighbours they are made of."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Self

from agentd.core.graph import Around, ConceptHash, Edge

# Facts in a row: a step, a path of steps, the ways to go along them, and how far.

DEPTH = 2  # facts in a row, unless a question says otherwise
MAX_DEPTH = 4
ROUNDS = 4  # of spreading activation
MAX_RESULTS = 50
LEAST = 0.1  # confidence of a fact that is walked
FANOUT = 64  # facts walked from one concept
BREADTH = 200  # concepts that are walked from in one round


class Way(StrEnum):
    """How a question goes on from where it begins: PATHS along the surest path to each thing, BREADTH
    along the one of the fewest facts, ACTIVATION along all facts at once, as far as it spreads.
    """

    PATHS = "paths"
    BREADTH = "breadth"
    ACTIVATION = "activation"

    @property
    def depth(self) -> int:
        """How many facts away things may be unless the question says it; activation ends by itself."""
        return ROUNDS if self is Way.ACTIVATION else DEPTH

    @property
    def most(self) -> int:
        """The largest depth that can be asked for."""
        return ROUNDS if self is Way.ACTIVATION else MAX_DEPTH


@dataclass(frozen=True, slots=True)
class PathLimits:
    """How far a walk goes.

    `depth` is the number of facts in a row, at most 4, `results` the number of concepts found, at most
    50. Facts less sure than `least` are not there. From one concept the `fanout` surest facts are
    walked, in one round the `breadth` concepts that were reached most surely: what is beyond that is
    not looked at, so that the work has a bound in a graph of any shape (depth · breadth · fanout).
    Raises ValueError for a limit that has no meaning.
    """

    depth: int = MAX_DEPTH
    results: int = MAX_RESULTS
    least: float = LEAST
    fanout: int = FANOUT
    breadth: int = BREADTH

    def __post_init__(self) -> None:
        if not 0 <= self.depth <= MAX_DEPTH:
            raise ValueError(f"a walk has a depth of 0 to {MAX_DEPTH}, not {self.depth}")
        if not 0 <= self.results <= MAX_RESULTS:
            raise ValueError(f"a walk finds 0 to {MAX_RESULTS} concepts, not {self.results}")
        if not 0.0 <= self.least <= 1.0:
            raise ValueError(f"a confidence lies in [0, 1]; {self.least} does not")
        if self.fanout < 1 or self.breadth < 1:
            raise ValueError("a walk takes at least one fact and one concept")


LIMITS = PathLimits()


class PathStep(NamedTuple):
    """A fact as it is walked: `forward` from its subject to its object, or back."""

    # A tuple, as a Path is: a question makes hundreds, and these are made three times as fast.

    edge: Edge
    forward: bool

    @property
    def source(self) -> ConceptHash:
        """Where it begins."""
        return self.edge.subject if self.forward else self.edge.object

    @property
    def target(self) -> ConceptHash:
        """Where it leads."""
        return self.edge.object if self.forward else self.edge.subject

    @property
    def is_loop(self) -> bool:
        """It leads where it began."""
        return self.edge.subject.value == self.edge.object.value

    @property
    def direction(self) -> str:
        """`out` from the subject to the object, or `in`."""
        return "out" if self.forward else "in"

    @property
    def key(self) -> tuple[bytes, bool]:
        """What tells it from all others: the hash of the fact, and the direction."""
        return self.edge.fact.value, self.forward


class Path(NamedTuple):
    """Facts in a row from `start` to `end`; `confidence` is the product of theirs, 1.0 for none."""

    start: ConceptHash
    end: ConceptHash
    steps: tuple[PathStep, ...] = ()
    confidence: float = 1.0
    trail: bytes = b""  # the hashes of the facts, to compare paths by
    visited: tuple[bytes, ...] = ()  # the hashes of the concepts

    @classmethod
    def at(cls, concept: ConceptHash) -> Self:
        """The path that has not begun."""
        return cls(concept, concept, visited=(concept.value,))

    def then(self, step: PathStep) -> Path:
        """One step further."""
        start, _, steps, confidence, trail, visited = self
        edge, target = step.edge, step.target
        return Path(
            start,
            target,
            (*steps, step),
            confidence * edge.confidence,
            trail + edge.fact.value,
            (*visited, target.value),
        )

    @property
    def depth(self) -> int:
        """How many facts it has."""
        return len(self.steps)

    def visits(self, concept: ConceptHash) -> bool:
        """It goes through, or begins or ends there."""
        return concept.value in self.visited

    def before(self, other: Path) -> bool:
        """It comes first: the surer one, then the shorter one, then by hashes."""
        if self.confidence != other.confidence:
            return self.confidence > other.confidence
        return self.order < other.order

    def shorter(self, other: Path) -> bool:
        """It comes first where the length counts before the confidence."""
        if len(self.steps) != len(other.steps):
            return len(self.steps) < len(other.steps)
        return self.before(other)

    @property
    def order(self) -> tuple[float, int, bytes, bytes, bytes]:
        """Sorts paths as `before` says."""
        ends = self.end.value, self.start.value
        return -self.confidence, len(self.steps), *ends, self.trail

    @property
    def nearness(self) -> tuple[int, tuple[float, int, bytes, bytes, bytes]]:
        """Sorts paths as `shorter` says."""
        return len(self.steps), self.order


# What is around concepts: their facts as steps, asked for one batch at a time.


@dataclass(frozen=True, slots=True)
class View:
    """What of the graph is seen: the facts of these audiences (None: of all), as sure as they are at
    `now` (None: as they were when they were said).
    """

    scopes: Sequence[str] | None = None
    now: datetime | None = None


WHOLE = View()


class Adjacency:
    """The facts around concepts, each concept asked for once.

    `preferred` are the predicates that a question is about: of their facts another `fanout` are taken
    per concept, so that a concept with many others does not hide them.
    """

    def __init__(
        self,
        limits: PathLimits,
        view: View = WHOLE,
        *,
        preferred: Collection[str] = (),
    ) -> None:
        self._limits = limits
        self._view = view
        self._preferred = frozenset(preferred)
        self._steps: dict[bytes, tuple[PathStep, ...]] = {}

    def load(self, concepts: Iterable[ConceptHash]) -> Generator[Around, Sequence[Edge], None]:
        """Ask for the facts about those that were not asked for yet: once, or not at all."""
        wanted = {c.value: c for c in concepts if c.value not in self._steps}
        if not wanted:
            return
        view, about = self._view, sorted(self._preferred)
        edges = yield Around([*wanted.values()], view.scopes, view.now, self._limits.fanout, about)
        for concept, steps in _around(wanted, edges, self._limits.least).items():
            self._steps[concept] = self._chosen(steps)

    def steps(self, concept: ConceptHash) -> tuple[PathStep, ...]:
        """The steps from a concept that was loaded. A fact about itself is one step."""
        return self._steps[concept.value]

    def _chosen(self, steps: list[PathStep]) -> tuple[PathStep, ...]:
        most = self._limits.fanout
        if len(steps) <= most:
            return tuple(steps)
        steps.sort(key=_surest)
        about = [step for step in steps if step.edge.predicate in self._preferred][:most]
        return tuple(
            sorted({step.key: step for step in (*steps[:most], *about)}.values(), key=_surest)
        )


def _around(
    concepts: Iterable[bytes], edges: Iterable[Edge], least: float
) -> dict[bytes, list[PathStep]]:
    """The steps from each concept along what is sure enough."""
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


def _surest(step: PathStep) -> tuple[float, float, bytes]:
    edge = step.edge
    return -edge.confidence, -edge.newest.timestamp(), edge.fact.value
