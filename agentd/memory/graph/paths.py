"""Ways through the graph, and the neighbours they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from agentd.core.graph import ConceptHash, Edge

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
