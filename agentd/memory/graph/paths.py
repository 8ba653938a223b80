"""Paths through the graph, their steps, and the limits of walks."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Self

from msgspec import Struct

from agentd.core.graph import ConceptHash, Edge

DEPTH = 2  # facts of a path, unless a question says otherwise
MAX_DEPTH = 4
ROUNDS = 4  # rounds of spreading activation
MAX_RESULTS = 50
LEAST = 0.1  # least confidence of a fact that is walked
FANOUT = 64  # facts walked from one concept
BREADTH = 200  # concepts walked from in one round


class TraversalMode(StrEnum):
    """How a question proceeds from its start: PATHS along the surest path to each concept, BREADTH
    along the path with the fewest facts, ACTIVATION along all facts at once by spreading.
    """

    PATHS = "paths"
    BREADTH = "breadth"
    ACTIVATION = "activation"

    @property
    def depth(self) -> int:
        """The default number of facts to walk; spreading ends by itself."""
        return ROUNDS if self is TraversalMode.ACTIVATION else DEPTH

    @property
    def most(self) -> int:
        """The largest depth that can be asked for."""
        return ROUNDS if self is TraversalMode.ACTIVATION else MAX_DEPTH


class PathLimits(Struct, frozen=True):
    """The limits of a walk.

    `depth` is the number of facts in a path, at most 4; `results` the number of concepts found, at
    most 50. Facts less sure than `least` are ignored. The `fanout` surest facts are walked from one
    concept, and the `breadth` surest concepts in one round; nothing beyond is read, so the work is
    bounded in any graph (depth · breadth · fanout). Raises ValueError for an invalid limit.
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
    """A fact as it is walked: `forward` from subject to object, or back."""

    # NamedTuples, as a question makes hundreds, and they are three times as fast to make.

    edge: Edge
    forward: bool

    @property
    def source(self) -> ConceptHash:
        """The concept where the step begins."""
        return self.edge.subject if self.forward else self.edge.object

    @property
    def target(self) -> ConceptHash:
        """The concept where the step leads."""
        return self.edge.object if self.forward else self.edge.subject

    @property
    def is_loop(self) -> bool:
        """Whether the step leads back to where it began."""
        return self.edge.subject.value == self.edge.object.value

    @property
    def direction(self) -> str:
        """`out` for subject to object, else `in`."""
        return "out" if self.forward else "in"

    @property
    def key(self) -> tuple[bytes, bool]:
        """The identity of the step: the fact's hash, and the direction."""
        return self.edge.fact.value, self.forward


class Path(NamedTuple):
    """A chain of facts from `start` to `end`; `confidence` is the product of theirs, 1.0 for
    none.
    """

    start: ConceptHash
    end: ConceptHash
    steps: tuple[PathStep, ...] = ()
    confidence: float = 1.0
    trail: bytes = b""  # concatenated hashes of the facts, to compare paths by
    visited: tuple[bytes, ...] = ()  # hashes of the concepts on the path

    @classmethod
    def at(cls, concept: ConceptHash) -> Self:
        """Return the empty path at a concept."""
        return cls(concept, concept, visited=(concept.value,))

    def then(self, step: PathStep) -> Path:
        """Return the path extended by a step."""
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
        """The number of facts."""
        return len(self.steps)

    def visits(self, concept: ConceptHash) -> bool:
        """Whether the concept is on the path, ends included."""
        return concept.value in self.visited

    def before(self, other: Path) -> bool:
        """Whether this path ranks before the other: the surer one, then the shorter one, then by
        hashes.
        """
        if self.confidence != other.confidence:
            return self.confidence > other.confidence
        return self.order < other.order

    def shorter(self, other: Path) -> bool:
        """Whether this path ranks before the other when length counts before confidence."""
        if len(self.steps) != len(other.steps):
            return len(self.steps) < len(other.steps)
        return self.before(other)

    @property
    def order(self) -> tuple[float, int, bytes, bytes, bytes]:
        """The sort key of `before`."""
        ends = self.end.value, self.start.value
        return -self.confidence, len(self.steps), *ends, self.trail

    @property
    def nearness(self) -> tuple[int, tuple[float, int, bytes, bytes, bytes]]:
        """The sort key of `shorter`."""
        return len(self.steps), self.order
