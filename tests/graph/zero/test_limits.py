"""No graph takes more steps, time or memory than it may, however it is made."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from agentd.testing.clock import FakeClock
from agentd.zero import (
    Array,
    Confidence,
    Constant,
    Graph,
    Hash32,
    Host,
    Map,
    Node,
    ProgramLimits,
    Value,
    execute,
    operation,
    parse,
    value_of,
    write,
)
from agentd.zero.faults import LimitReached
from agentd.zero.values import MAX_DEPTH
from tests.graph.zero.graphs import apply, graph_of
from tests.growth import QUADRATIC, growth


class HastyClock(FakeClock):
    """A clock on which a second passes with every look."""

    def monotonic(self) -> float:
        self._monotonic += 1
        return self._monotonic


def chain(length: int, op: str = "Identity", start: Value = "ab", doubled: bool = False) -> Graph:
    nodes = [Node("n0", Constant(start))]
    for index in range(length - 1):
        inputs = [f"n{index}"] * (2 if doubled else 1)
        nodes.append(operation(f"n{index + 1}", op, *inputs))
    return graph_of(*nodes)


def test_ten_thousand_steps_are_allowed_and_one_more_is_not() -> None:
    assert len(execute(chain(10_000)).trace) == 10_000
    assert ProgramLimits().steps == 10_000
    assert execute(chain(11), limits=ProgramLimits(steps=11)).outputs == {"n10": "ab"}
    with pytest.raises(LimitReached, match="node 'n10': the run has more than 10 steps"):
        execute(chain(11), limits=ProgramLimits(steps=10))


def test_a_run_ends_when_its_time_is_over() -> None:
    host = Host(clock=HastyClock())
    assert len(execute(chain(30), host=host).trace) == 30
    with pytest.raises(LimitReached, match="node 'n30': the run takes longer than 30 seconds"):
        execute(chain(40), host=host)


def test_a_wall_clock_that_jumps_does_not_end_a_run() -> None:
    class Jumping(FakeClock):
        """A clock whose wall time leaps a year with every look."""

        def now(self) -> datetime:
            found = super().now()
            self._now = found.replace(year=found.year + 1)
            return found

    graph = graph_of(operation("a", "Timestamp"), operation("b", "Timestamp"))
    assert execute(graph, host=Host(clock=Jumping())).outputs["b"]


@pytest.mark.parametrize(
    ("op", "start"), [("Concat", "ab"), ("ArrayPush", Array([1])), ("MergeMap", Map({"a": 1}))]
)
def test_what_doubles_itself_ends_at_a_limit_or_stays_small(op: str, start: Value) -> None:
    graph = chain(2000, op, start, doubled=True)
    if op == "MergeMap":
        assert execute(graph).outputs == {"n1999": start}
        return
    with pytest.raises(LimitReached) as caught:
        execute(graph)
    step = int(caught.value.message.split("'")[1][1:])
    assert step < 70


def test_a_value_grown_one_by_one_ends_at_the_limit_of_work() -> None:
    grown = [
        operation(f"n{index + 1}", "SetField", f"n{index}", "n0", field=f"k{index}")
        for index in range(200)
    ]
    nodes = [operation("n0", "CreateMap"), *grown]
    with pytest.raises(LimitReached, match="reads and makes more than"):
        execute(graph_of(*nodes), limits=ProgramLimits(work=2_000_000))
    assert len(execute(graph_of(*nodes)).trace) == 201


def test_reading_the_same_large_text_again_and_again_ends_at_the_limit_of_work() -> None:
    nodes = [Node("n0", Constant("x" * 4_000_000))]
    nodes += [operation(f"n{index}", "Hash", "n0", "n0") for index in range(1, 1000)]
    with pytest.raises(LimitReached, match="node 'n9'"):
        execute(graph_of(*nodes))


def test_a_value_shared_over_and_over_is_hashed_in_time() -> None:
    value: Value = Map({"a": 1})
    for _ in range(14):
        value = Map({"left": value, "right": value})
    assert isinstance(value, Map)
    assert value.size > 2_000_000
    assert execute(graph_of(Node("a", Constant(value)), operation("b", "Hash", "a"))).outputs["b"]
    larger = Map({"left": value, "right": value})
    with pytest.raises(LimitReached, match="a value would take"):
        Array([larger] * 10)


@pytest.mark.parametrize("count", [MAX_DEPTH, 5000])
def test_depth_ends_before_the_stack_does(count: int) -> None:
    plain: object = 1
    for _ in range(count):
        plain = [plain]
    if count == MAX_DEPTH:
        deepest = value_of(plain)
        graph = graph_of(Node("a", Constant(deepest)))
        assert parse(write(graph)) == graph
        with pytest.raises(LimitReached, match="nested deeper than 64"):
            apply("ArrayPush", [], deepest)
    else:
        with pytest.raises(LimitReached, match="nested deeper than 64"):
            value_of(plain)


@pytest.mark.parametrize(
    ("op", "inputs", "params"),
    [
        ("Split", [" " * 300_000], {}),
        ("ExtractParams", ["a " * 300_000], {}),
        ("Concat", ["x" * 9_000_000, "y" * 9_000_000], {}),
        ("Concat", ["x"] * 20, {"separator": "x" * 1_000_000}),
    ],
)
def test_no_operation_makes_a_value_that_is_too_large(
    op: str, inputs: list[str], params: dict[str, str]
) -> None:
    with pytest.raises(LimitReached):
        apply(op, *inputs, **params)


def wide(size: int) -> str:
    lines = ['{ id: "base", type: Operation, op: CreateMap }']
    for index in range(size):
        lines.append(f'{{ id: "c{index}", type: Constant, value: "label {index}" }}')
        lines.append(
            f'{{ id: "w{index}", type: Operation, op: SetField, inputs: ["base", "c{index}"],'
            f' field: "k{index}" }}'
        )
    names = ", ".join(f'"w{index}"' for index in range(size))
    lines.append(f'{{ id: "out", type: Operation, op: MergeMap, inputs: [{names}] }}')
    return "Graph { nodes: [\n" + ",\n".join(lines) + '],\noutputs: ["out"] }'


def test_reading_and_running_take_time_in_proportion_to_the_graph() -> None:
    texts = {size: wide(size) for size in (100, 400)}
    assert growth(lambda size: execute(parse(texts[size])), 100) < QUADRATIC


def test_the_order_of_a_long_chain_declared_backwards_is_found_in_proportion() -> None:
    def backwards(size: int) -> object:
        graph = chain(size)
        return execute(replace(graph, nodes=graph.nodes[::-1]))

    assert growth(backwards, 1000) < QUADRATIC


@pytest.mark.parametrize("leaf", [None, True, 1, "a", b"a", Hash32(bytes(32)), Confidence(0.5)])
def test_whatever_stands_in_the_deepest_value_is_read_back(leaf):
    deepest = leaf
    for _ in range(MAX_DEPTH):
        deepest = Array([deepest])
    graph = Graph("deep", (Node("a", Constant(deepest)),), ("a",))
    assert parse(write(graph)) == graph
