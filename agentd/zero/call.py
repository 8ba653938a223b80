"""What a run gets from outside, and one call of an operation with typed access to its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from agentd.core.ports import Clock
from agentd.zero.faults import WrongValue
from agentd.zero.statements import SemanticTuple
from agentd.zero.values import Array, Confidence, Map, Value, kind_of

MAX_STEPS = 10_000
TIMEOUT = 30.0  # seconds
MAX_WORK = 64 * 1024 * 1024  # bytes that operations of one run read and make


class States(Protocol):
    """Values kept between runs."""

    def load(self, key: str) -> Value:
        """Return the value kept under the key, Null if there is none."""


class Memories(Protocol):
    """Statements kept in the concept graph."""

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        """Return the statements around a concept, highest confidence first: at most `limit`, at
        most `depth` steps away, and with this predicate only unless it is empty.
        """


@dataclass(frozen=True, slots=True)
class Host:
    """What operations can reach: time, the key of signatures, states and memories. Operations that
    need a missing one raise Unavailable.
    """

    clock: Clock | None = None
    key: bytes = field(default=b"", repr=False)
    states: States | None = None
    memories: Memories | None = None


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Limits of one run: steps, seconds (only with a clock), and bytes read and made."""

    steps: int = MAX_STEPS
    seconds: float = TIMEOUT
    work: int = MAX_WORK


Number: TypeAlias = int | float


@dataclass(slots=True)
class Effects:
    """Changes that are made after a run has succeeded."""

    saved: dict[str, Value] = field(default_factory=dict)
    stored: list[SemanticTuple] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation. Its methods raise WrongValue for a value of another kind."""

    op: str
    inputs: tuple[Value, ...]
    params: Map
    host: Host
    effects: Effects

    def text(self, index: int = 0) -> str:
        """Return an input that is a String. Raises WrongValue if it is not."""
        found = self.inputs[index]
        if isinstance(found, str):
            return found
        raise self._wrong(index, "a String")

    def map(self, index: int = 0) -> Map:
        """Return an input that is a Map. Raises WrongValue if it is not."""
        found = self.inputs[index]
        if isinstance(found, Map):
            return found
        raise self._wrong(index, "a Map")

    def array(self, index: int = 0) -> Array:
        """Return an input that is an Array. Raises WrongValue if it is not."""
        found = self.inputs[index]
        if isinstance(found, Array):
            return found
        raise self._wrong(index, "an Array")

    def number(self, index: int = 0) -> Number:
        """Return an input that is an Int, a Float or a Confidence. Raises WrongValue if
        it is not.
        """
        found = self.inputs[index]
        if isinstance(found, Confidence):
            return found.value
        if isinstance(found, int | float) and not isinstance(found, bool):
            return found
        raise self._wrong(index, "a number")

    def text_param(self, name: str, default: str | None = None) -> str:
        """Return a parameter that is a String. Raises WrongValue if it is not."""
        found = self.params.get(name, default)
        if isinstance(found, str):
            return found
        raise self._unlike(name, "a String")

    def whole_param(self, name: str, default: int | None, least: int, most: int) -> int:
        """Return a parameter that is an Int from `least` to `most`. Raises WrongValue
        if it is not.
        """
        found = self.params.get(name, default)
        if isinstance(found, int) and not isinstance(found, bool) and least <= found <= most:
            return found
        raise self._unlike(name, f"an Int from {least} to {most}")

    def _wrong(self, index: int, wish: str) -> WrongValue:
        kind = kind_of(self.inputs[index])
        return WrongValue(
            f"{self.op} needs {wish} as input {index + 1}, and this is of kind {kind}"
        )

    def _unlike(self, name: str, wish: str) -> WrongValue:
        if name not in self.params:
            return WrongValue(f"{self.op} needs the parameter {name!r}, {wish}")
        return WrongValue(f"the parameter {name!r} of {self.op} is {wish}")


@dataclass(frozen=True, slots=True)
class Builtin:
    """An operation: its function, how many inputs it takes (`most` None: any number), its
    parameters (None: any), and whether it works without reading its inputs whole.
    """

    run: Callable[[Call], Value]
    least: int = 1
    most: int | None = 1
    params: frozenset[str] | None = frozenset()
    is_light: bool = False
