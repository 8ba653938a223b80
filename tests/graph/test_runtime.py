"""A runtime runs graphs and keeps what they save, all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import pytest

from agentd.core.errors import ZeroError
from agentd.memory.graph.program import ZeroRuntime
from agentd.testing.clock import FakeClock
from agentd.zero import Array, Confidence, Map, ProgramLimits, Value
from agentd.zero.statements import SemanticTuple
from tests.graph.zero.graphs import example

COUNTER = """
Graph {
    name: "counter",
    nodes: [
        { id: "key", type: Constant, value: "visits" },
        { id: "before", type: Operation, op: LoadState, inputs: ["key"] },
        { id: "zero", type: Constant, value: 0 },
        { id: "start", type: Operation, op: If, inputs: ["before", "before", "zero"] },
        { id: "step", type: External, uri: "input://step" },
        { id: "after", type: Operation, op: Add, inputs: ["start", "step"] },
        { id: "saved", type: Operation, op: SaveState, inputs: ["key", "after"] },
        { id: "divided", type: Operation, op: Divide, inputs: ["saved", "step"] },
    ],
    outputs: ["saved"],
}
"""
LEARN = """
Graph {
    nodes: [
        { id: "who", type: Constant, value: "agent" },
        { id: "what", type: External, uri: "input://what" },
        { id: "learned", type: Operation, op: MemoryStore, inputs: ["who", "what"],
          params: { predicate: "needs", confidence: 0.9 } },
        { id: "known", type: Operation, op: MemoryRecall, inputs: ["who"], params: { limit: 5 } },
    ],
    outputs: ["learned", "known"],
}
"""


class Store:
    """A RuntimeStore in memory that counts how often it was given something to keep."""

    def __init__(self) -> None:
        self.states: dict[str, Value] = {}
        self.statements: list[SemanticTuple] = []
        self.kept = 0

    def load(self, key: str) -> Value:
        return self.states.get(key)

    def recall(
        self, label: str, *, predicate: str, depth: int, limit: int
    ) -> Sequence[SemanticTuple]:
        return [found for found in self.statements if found.subject == label][:limit]

    def keep(self, states: Mapping[str, Value], statements: Sequence[SemanticTuple]) -> None:
        self.kept += 1
        self.states.update(states)
        self.statements += statements


def runtime(store: Store, limits: ProgramLimits | None = None) -> ZeroRuntime:
    return ZeroRuntime(store, FakeClock(), key=b"key", limits=limits)


def test_bytes_are_hashed() -> None:
    assert runtime(Store()).hash(b"agent").value == sha256(b"agent").digest()


def test_a_state_is_kept_between_runs() -> None:
    store = Store()
    assert runtime(store).execute_graph(COUNTER, {"step": 2}) == {"saved": 2}
    assert runtime(store).execute_graph(COUNTER, {"step": 3}) == {"saved": 5}
    assert runtime(store).load_state("visits") == 5


def test_a_run_that_fails_keeps_nothing() -> None:
    store = Store()
    with pytest.raises(ZeroError, match="cannot divide by zero"):
        runtime(store).execute_graph(COUNTER, {"step": 0})
    assert (store.kept, store.states) == (0, {})
    runtime(store).execute_graph(COUNTER, {"step": 1})
    assert store.kept == 1


def test_statements_are_stored_and_recalled_by_the_next_run() -> None:
    store = Store()
    first = runtime(store).execute_graph(LEARN, {"what": "memory"})
    second = runtime(store).execute_graph(LEARN, {"what": "sleep"})
    learned = {
        "subject": "agent", "predicate": "needs", "object": "memory", "confidence": Confidence(0.9)
    }  # fmt: skip
    assert first == {"learned": Map(learned), "known": Array()}
    assert second["known"] == Array([Map(learned)])
    assert [found.object for found in store.statements] == ["memory", "sleep"]


def test_a_run_that_only_reads_writes_nothing() -> None:
    store = Store()
    assert "output" in runtime(store).execute_graph(example("example_memory").encode(), {})
    assert store.kept == 0


def test_states_are_saved_as_values_and_null_is_none() -> None:
    store = Store()
    runtime(store).save_state("a", {"list": [1, None]})
    assert runtime(store).load_state("a") == Map({"list": Array([1, None])})
    runtime(store).save_state("a", None)
    assert runtime(store).load_state("a") is None
    assert runtime(store).load_state("never saved") is None
    with pytest.raises(ZeroError, match="no value of the language"):
        runtime(store).save_state("a", object())


def test_limits_are_those_that_were_given() -> None:
    with pytest.raises(ZeroError, match="more than 3 steps"):
        runtime(Store(), ProgramLimits(steps=3)).execute_graph(COUNTER, {"step": 1})
