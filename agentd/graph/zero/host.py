"""What a run is given from outside, and what it may take and last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentd.graph.tuples import SemanticTuple
from agentd.graph.zero.values import Value
from agentd.ports import Clock

MAX_STEPS = 10_000
TIMEOUT = 30.0  # seconds
MAX_WORK = 64 * 1024 * 1024  # bytes that operations of one run read and make


class States(Protocol):
    """Values kept between runs."""

    def load(self, key: str) -> Value:
        """The value kept under the key, Null if there is none."""


class Memories(Protocol):
    """What is remembered."""

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        """The statements around a concept, the surest first, at most `limit`, no more than `depth`
        steps away; with this predicate alone unless it is empty.
        """


@dataclass(frozen=True, slots=True)
class Host:
    """What operations reach: time, the key of signatures, states and memories. What needs something
    that is missing here is refused.
    """

    clock: Clock | None = None
    key: bytes = field(default=b"", repr=False)
    states: States | None = None
    memories: Memories | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Steps, seconds (kept if the host has a clock) and work of one run."""

    steps: int = MAX_STEPS
    seconds: float = TIMEOUT
    work: int = MAX_WORK
