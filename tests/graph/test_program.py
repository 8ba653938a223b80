"""Texts of several graphs, run one behind the other with a memory of their own."""

from __future__ import annotations

import json

import pytest

from agentd.core.errors import GraphError, InvalidRequest, ZeroError
from agentd.memory.graph.program import ProgramMemory, run_all
from agentd.testing import FakeClock
from agentd.zero import Array, Map, parse
from agentd.zero.decompiler import decompile
from agentd.zero.record_graph import emit, record_hash
from agentd.zero.statements import SemanticTuple
from tests.graph.formats.records import grown
from tests.graph.test_runtime import COUNTER, LEARN
from tests.graph.zero.graphs import EXAMPLES, example

SIGNED = """
Graph { nodes: [
    { id: "a", type: Constant, value: 1 },
    { id: "b", type: Operation, op: Sign, inputs: ["a"] },
], outputs: ["b"] }
"""


def run(text, **inputs):
    return run_all(text.encode(), inputs, FakeClock())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_graphs_that_ship_run_and_json_can_say_what_comes_of_them(name):
    (told,) = run(example(name))
    assert (told["name"], told["confidence"]) in {("memory_schema", 1.0), ("example_memory", 1.0)}
    assert json.loads(json.dumps(told)) == told
    assert len(told["hash"]) == 64
    assert run(example(name)) == [told]


def test_compiled_memories_run_each_in_turn():
    records = [grown(3), grown(5)]
    text = "\n".join(map(emit, records))
    outputs = [told["outputs"]["output"] for told in run(text)]
    assert [one["record_hash"] for one in outputs] == [record_hash(r).hex() for r in records]
    assert decompile(parse(emit(records[0]))).record == records[0]


def test_a_graph_knows_what_those_before_it_saved_and_stored():
    first, second = run(COUNTER + COUNTER, step=2)
    assert (first["outputs"], second["outputs"]) == ({"saved": 2}, {"saved": 4})
    first, second = run(LEARN + LEARN, what="memory")
    assert first["outputs"]["known"] == []
    assert second["outputs"]["known"] == [first["outputs"]["learned"]]
    assert run(COUNTER, step=2)[0]["outputs"] == {"saved": 2}, "the next text knows nothing"


def test_nothing_is_signed_without_a_key():
    with pytest.raises(ZeroError, match="key") as caught:
        run(SIGNED)
    assert (caught.value.reason, caught.value.line) == ("zero_unavailable", 4)


def test_an_input_that_no_graph_asks_for_is_refused():
    with pytest.raises(InvalidRequest, match="'stepp'"):
        run(COUNTER, step=1, stepp=2)
    assert len(run(COUNTER + LEARN, step=1, what="tea")) == 2


def test_recall_goes_as_far_as_it_may_by_any_spelling_the_surest_first():
    store = ProgramMemory()
    near = SemanticTuple("An Agent", "needs", "Long Term Memory", 0.5)
    far = SemanticTuple("long-term-memory", "madeOf", "notes", 0.9)
    store.keep({}, [near, far])

    def recalled(label, predicate="", depth=3, limit=9):
        return list(store.recall(label, predicate=predicate, depth=depth, limit=limit))

    assert recalled("an-agent", depth=1) == [near]
    assert recalled("an-agent", depth=2) == [far, near]
    assert recalled("an-agent", depth=2, limit=1) == [far]
    assert recalled("notes", "made of") == [far]
    assert recalled("an-agent", "made of") == recalled("nobody") == []


def test_what_has_no_name_is_kept_by_nobody():
    store = ProgramMemory()
    with pytest.raises(GraphError):
        store.keep({"a": 1}, [SemanticTuple("\u200b", "is", "this")])
    assert store.load("a") is None


def test_what_is_kept_is_written_and_read_again():
    store = ProgramMemory()
    store.keep(
        {"n": 4, "deep": Map({"x": Array([1.5, "a"])})}, [SemanticTuple("a b", "is", "c", 0.5)]
    )
    again = ProgramMemory.read(store.text())
    assert (again.load("n"), again.load("deep")) == (4, store.load("deep"))
    assert again.recall("a-b", predicate="", depth=1, limit=9) == [
        SemanticTuple("a b", "is", "c", 0.5)
    ]
    assert again.text() == store.text()
    assert ProgramMemory.read("").text() == ""


def test_what_is_no_state_is_refused():
    for text in ("Graph {", COUNTER):
        with pytest.raises(GraphError):
            ProgramMemory.read(text)


def test_with_a_key_values_are_signed():
    assert run_all(SIGNED.encode(), {}, FakeClock(), key=b"k")
