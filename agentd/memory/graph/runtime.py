"""Graphs as programs of the memory: hashed, run, and their states kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Protocol

from agentd.core.ports import Clock
from agentd.zero.call import Host, ProgramLimits
from agentd.zero.interpreter import Execution, execute
from agentd.zero.parser import parse
from agentd.zero.program_graph import Graph
from agentd.zero.statements import SemanticTuple
from agentd.zero.values import Hash32, Value, value_of


class MemoryRuntime(Protocol):
    """What runs graphs for a memory."""

    def hash(self, data: bytes) -> Hash32:
        """The SHA-256 of the bytes."""

    def execute_graph(
        self, source: str | bytes, inputs: Mapping[str, object]
    ) -> Mapping[str, Value]:
        """Run the graph of a `.0` text and return its outputs by id; then what it saves and stores is
        kept. A run that fails keeps nothing. Raises ZeroError.
        """

    def load_state(self, key: str) -> Value:
        """The value kept under the key; None if there is none, or Null was saved."""

    def save_state(self, key: str, value: object) -> None:
        """Keep a value under the key. Raises ZeroError for what is no value."""


class RuntimeStore(Protocol):
    """Where a runtime keeps states and statements."""

    def load(self, key: str) -> Value:
        """The value kept under the key, None if there is none."""

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        """The statements around a concept, the surest first, at most `limit`, no more than `depth`
        steps away; with this predicate alone unless it is empty.
        """

    def keep(self, states: Mapping[str, Value], statements: Sequence[SemanticTuple]) -> None:
        """Keep all of it or, raising, nothing."""


class ZeroRuntime:
    """The MemoryRuntime of agentd's own interpreter.

    `key` is what Sign and Verify use; without it they are refused. The clock bounds the time of a run.
    """

    def __init__(
        self,
        store: RuntimeStore,
        clock: Clock,
        *,
        key: bytes = b"",
        limits: ProgramLimits | None = None,
    ) -> None:
        self._store = store
        self._host = Host(clock=clock, key=key, states=store, memories=store)
        self._limits = limits or ProgramLimits()

    def hash(self, data: bytes) -> Hash32:
        """As MemoryRuntime says."""
        return Hash32(sha256(data).digest())

    def execute_graph(
        self, source: str | bytes, inputs: Mapping[str, object]
    ) -> Mapping[str, Value]:
        """As MemoryRuntime says."""
        return self.run(parse(source), inputs).outputs

    def run(self, graph: Graph, inputs: Mapping[str, object]) -> Execution:
        """The same for a graph that was parsed, with all that came of it. Raises ZeroError."""
        run = execute(graph, inputs, host=self._host, limits=self._limits)
        if run.saved or run.stored:
            self._store.keep(run.saved, run.stored)
        return run

    def load_state(self, key: str) -> Value:
        """As MemoryRuntime says."""
        return self._store.load(key)

    def save_state(self, key: str, value: object) -> None:
        """As MemoryRuntime says."""
        self._store.keep({key: value_of(value)}, ())
