"""How graphs run: order, ways, permissions, confidence, hash."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from agentd.zero import (
    Array,
    Condition,
    Confidence,
    Constant,
    External,
    Graph,
    Lookup,
    Map,
    Node,
    Permission,
    Route,
    Value,
    execute,
    operation,
    parse,
)
from agentd.zero.faults import (
    CycleFound,
    DuplicateId,
    MissingInput,
    UnknownId,
    WrongValue,
    ZeroError,
)
from tests.graph.zero.graphs import EVERYTHING, graph_of


def constant(name: str, value: Value) -> Node:
    return Node(name, Constant(value))


def test_a_graph_with_every_type_of_node_runs() -> None:
    run = execute(parse(EVERYTHING), {"message": "/help me"})
    assert run.outputs["skill"] == "skill:help"
    assert run.outputs["both"] == "/help|skill:help"
    assert run.outputs["sure"] == Confidence(0.95 * 0.8)
    assert run.confidence == 0.8 * 0.95
    other = execute(parse(EVERYTHING), {"message": "what now"})
    assert other.outputs["skill"] == "none"
    assert other.confidence == pytest.approx(0.8 * 0.7)
    assert execute(parse(EVERYTHING), {"message": "hello"}).confidence == 0.8


def test_nodes_run_behind_what_they_need_and_otherwise_as_declared() -> None:
    graph = graph_of(
        operation("z", "Identity", "m"),
        constant("b", 1),
        constant("m", 2),
        operation("a", "Identity", "z"),
        constant("c", 3),
    )
    assert execute(graph).trace == ("b", "m", "z", "a", "c")


def test_routes_and_permissions_run_behind_what_they_look_at() -> None:
    graph = graph_of(
        Node("way", Route((Condition("a", input="late", match_value=1), Condition("b")))),
        Node("may", Permission("act", 0.5)),
        constant("late", 1),
        constant("sender_confidence", Confidence(0.6)),
        outputs=("way", "may"),
    )
    run = execute(graph)
    assert run.outputs["way"] == Map(
        {"target": "a", "confidence": Confidence(1.0), "matched_input": "late"}
    )
    assert run.outputs["may"] == Map(
        {"granted": True, "confidence": Confidence(0.6), "action": "act"}
    )
    assert run.trace == ("late", "way", "sender_confidence", "may")


@pytest.mark.parametrize(
    ("value", "threshold", "is_taken"),
    [(0.9, 0.9, True), (Confidence(0.8), 0.9, False), (1, 0.9, True), (True, 0.9, True),
     ("", 0.9, False), ("x", 0.9, True), (None, 0.1, False), ("", 0.0, True)],
)  # fmt: skip
def test_a_way_is_taken_from_its_threshold_on(
    value: Value, threshold: float, is_taken: bool
) -> None:
    way = Route((Condition("there", input="seen", threshold=threshold),))
    run = execute(graph_of(constant("seen", value), Node("way", way)))
    assert (run.outputs["way"] is not None) == is_taken


def test_a_match_is_of_one_kind() -> None:
    way = Route((Condition("there", input="seen", match_value=1, confidence=0.5),))
    for value, confidence in ((1, 0.5), (True, 1.0), (1.0, 1.0), ("1", 1.0)):
        run = execute(graph_of(constant("seen", value), Node("way", way)))
        assert run.confidence == confidence


@pytest.mark.parametrize(
    ("sender", "least", "granted", "confidence"),
    [
        (None, 0.5, True, 0.5),
        (None, 0.6, False, 0.1),
        (0.9, 0.6, True, 0.9),
        (0.2, 0.6, False, 0.1),
    ],
)
def test_a_refused_permission_leaves_a_tenth_of_the_confidence(
    sender: float | None, least: float, granted: bool, confidence: float
) -> None:
    nodes = [] if sender is None else [constant("who", sender)]
    inputs = () if sender is None else ("who",)
    run = execute(graph_of(*nodes, Node("may", Permission("act", least), inputs)))
    found = run.outputs["may"]
    assert isinstance(found, Map)
    assert (found["granted"], run.confidence) == (granted, confidence)


def test_a_table_without_the_key_or_a_default_gives_null() -> None:
    table = Map({"a": 1})
    run = execute(graph_of(constant("key", "b"), Node("found", Lookup(table), ("key",))))
    assert run.outputs["found"] is None
    with pytest.raises(WrongValue, match="a Lookup needs a String"):
        execute(graph_of(constant("key", 1), Node("found", Lookup(table), ("key",))))


def test_a_field_of_a_node_is_an_input() -> None:
    holder = constant("m", Map({"a": Map({"b": 1}), "a.b": 2}))
    assert execute(graph_of(holder, operation("x", "Identity", "m.a.b"))).outputs["x"] == 2
    with pytest.raises(MissingInput, match=r"node 'x': there is no field 'm\.c'"):
        execute(graph_of(holder, operation("x", "Identity", "m.c")))
    with pytest.raises(WrongValue, match="this is of kind Int"):
        execute(graph_of(constant("m", 1), operation("x", "Identity", "m.c")))


def test_inputs_of_the_run_are_needed_and_made_values() -> None:
    graph = graph_of(Node("in", External("input://message")))
    run = execute(graph, {"message": {"a": [1]}, "unused": 1})
    assert run.outputs == {"in": Map({"a": Array([1])})}
    with pytest.raises(MissingInput, match="node 'in': the input 'message' was not given"):
        execute(graph)
    for bad in (object(), 2**63, float("nan"), "\ud800", {1: 2}):
        with pytest.raises(WrongValue, match="the input 'message': "):
            execute(graph, {"message": bad})


def test_errors_of_a_run_name_the_place_of_the_node() -> None:
    text = 'Graph {\n nodes: [\n  { id: "a", type: Constant, value: 1 },\n'
    text += '    { id: "b", type: Operation, op: Trim, inputs: ["a"] } ] }'
    with pytest.raises(
        ZeroError, match="line 4, column 5: node 'b': Trim needs a String"
    ) as caught:
        execute(parse(text))
    assert (caught.value.line, caught.value.column) == (4, 5)


def test_what_is_wrong_with_a_graph_has_its_own_error() -> None:
    one, again = constant("a", 1), constant("a", 2)
    with pytest.raises(DuplicateId, match="'a' is taken"):
        execute(graph_of(one, again))
    with pytest.raises(UnknownId, match="'x' needs 'nowhere'"):
        execute(graph_of(operation("x", "Identity", "nowhere")))
    with pytest.raises(UnknownId, match="the output 'b' is no node"):
        execute(graph_of(one, outputs=("b",)))
    with pytest.raises(UnknownId, match="the entry point 'b' is no node"):
        execute(replace(graph_of(one), entry_point="b"))
    ring = [operation(f"n{i}", "Identity", f"n{(i + 1) % 3}") for i in range(3)]
    with pytest.raises(CycleFound, match="n1 needs n2 needs n0 needs n1"):
        execute(graph_of(operation("behind", "Identity", "n1"), *ring))
    way = Node("way", Route((Condition("x", input="way", threshold=1.0),)))
    with pytest.raises(CycleFound, match="way needs way"):
        execute(graph_of(way))


def test_a_run_has_the_same_trace_and_hash_each_time_and_another_for_other_values() -> None:
    first = execute(parse(EVERYTHING), {"message": "/help me"})
    again = execute(parse(EVERYTHING), {"message": "/help me"})
    assert (first.trace, first.hash) == (again.trace, again.hash)
    assert first.hash != execute(parse(EVERYTHING), {"message": "/help you"}).hash
    kinds = [execute(graph_of(constant("a", value))).hash for value in (1, 1.0, True, "1")]
    assert len(set(kinds)) == 4
    renamed = [execute(graph_of(constant(name, 1))).hash for name in ("a", "b")]
    assert renamed[0] != renamed[1]


def test_any_declaration_order_gives_the_same_outputs() -> None:
    graph = parse(EVERYTHING)
    expected = execute(graph, {"message": "/help me"})
    nodes = list(graph.nodes)
    for seed in range(20):
        random.Random(seed).shuffle(nodes)
        run = execute(Graph("", tuple(nodes), graph.outputs), {"message": "/help me"})
        assert run.outputs == expected.outputs
        assert run.confidence == pytest.approx(expected.confidence)
