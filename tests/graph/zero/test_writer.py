"""What is written is read again; and older readers can read what is written for them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.zero import (
    Array,
    Condition,
    Confidence,
    Constant,
    External,
    Graph,
    Hash32,
    Lookup,
    Map,
    Node,
    Permission,
    Route,
    constant,
    execute,
    operation,
    parse,
    write,
    write_compatible,
)
from agentd.zero.faults import DuplicateId, WrongValue
from tests.graph.zero.graphs import EVERYTHING, EXAMPLES, example, graph_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["a:b", "# {", '", ] "', "\\", "}", "\n", "\u2028", "\0", "😀", "id: x", ""]
)
SHARES = st.floats(0, 1)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.binary(max_size=8),
    st.binary(min_size=32, max_size=32).map(Hash32),
    SHARES.map(Confidence),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(Array) | st.dictionaries(TEXTS, inner, max_size=3).map(Map)
    ),
    max_leaves=8,
)
CONDITIONS = st.builds(Condition, TEXTS, st.just("first"), VALUES, SHARES, SHARES)
TYPES = st.one_of(
    st.builds(External, TEXTS),
    VALUES.map(Constant),
    st.builds(Lookup, st.dictionaries(TEXTS, VALUES, max_size=3).map(Map), VALUES),
    st.lists(CONDITIONS, max_size=3).map(lambda found: Route(tuple(found))),
    st.builds(Permission, TEXTS, SHARES),
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(
        st.lists(TEXTS.filter(lambda name: name and "." not in name), max_size=4, unique=True)
    )
    nodes = [constant("first", 1)] if "first" not in names else []
    for name in names:
        known = (
            tuple(draw(st.lists(st.sampled_from([n.id for n in nodes]), max_size=2)))
            if nodes
            else ()
        )
        params = Map(draw(st.dictionaries(st.sampled_from(["p", "q:r"]), VALUES, max_size=2)))
        kind = Constant(draw(VALUES)) if name == "first" or not nodes else draw(TYPES)
        nodes.append(Node(name, kind, known, params, draw(TEXTS)))
    outputs = tuple(node.id for node in nodes[-1:])
    metadata = Map(draw(st.dictionaries(TEXTS, VALUES, max_size=2)))
    if "first" not in [node.id for node in nodes[:1]]:
        nodes = [node for node in nodes if not isinstance(node.type, Route)]
        outputs = ()
    return Graph(
        draw(TEXTS), tuple(nodes), outputs, draw(st.integers(0, 99)), draw(TEXTS), "", metadata
    )


def old_reader(text: str) -> Any:
    """How older readers go about it: they drop comments and trailing commas and quote keys by
    looking for them anywhere in the text, and take the rest for JSON.
    """
    lines = [line.split("#")[0] for line in text.split("\n")]
    plain = "\n".join(lines)
    start = plain.index("{", plain.index("Graph"))
    depth = 0
    for end in range(start, len(plain)):
        depth += {"{": 1, "}": -1}.get(plain[end], 0)
        if not depth:
            break
    body = re.sub(r"(\s*)(\w+)(\s*):", r'\1"\2"\3:', plain[start : end + 1])
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", body), strict=True)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_a_written_graph_is_read_as_the_same(graph: Graph) -> None:
    text = write(graph)
    again = parse(text)
    assert again == graph
    assert write(again) == text


@pytest.mark.parametrize("text", [EVERYTHING, *map(example, EXAMPLES)])
def test_the_graphs_that_ship_stay_the_same_and_run_the_same(text: str) -> None:
    graph = parse(text)
    again = parse(write(graph))
    assert again == graph
    inputs = {"message": "/help me"}
    assert execute(again, inputs).hash == execute(graph, inputs).hash


def test_equal_graphs_have_equal_texts() -> None:
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert write(graph_of(constant("x", one))) == write(graph_of(constant("x", other)))


def test_the_strict_form_stands_as_documented() -> None:
    graph = graph_of(
        constant(
            "a", {"t": "10:30 # {x}", "h": Hash32(bytes(32)), "c": Confidence(0.5), "b": b"\1"}
        ),
        operation("b", "GetField", "a", field="t"),
    )
    assert write(graph) == (
        'Graph {\n    "name": "test",\n    "version": 1,\n    "nodes": [\n'
        '        {"id": "a", "type": "Constant", "value": {"b": Bytes("01"), "c": Confidence(0.5),'
        f' "h": Hash32("{"00" * 32}"), "t": "10:30 # {{x}}"}}}},\n'
        '        {"id": "b", "type": "Operation", "op": "GetField", "inputs": ["a"],'
        ' "params": {"field": "t"}}\n    ],\n    "outputs": ["b"]\n}\n'
    )


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_older_readers_can_read_what_is_written_for_them(graph: Graph) -> None:
    try:
        text = write_compatible(graph)
    except (DuplicateId, WrongValue):
        return
    found = old_reader(text)
    assert [node["id"] for node in found["nodes"]] == [
        node.id.replace(":", "") for node in graph.nodes
    ]
    assert found["description" if graph.description else "name"] == (
        graph.description or graph.name
    ).replace(":", "")


def test_older_readers_cannot_read_the_strict_form_with_a_colon_in_it() -> None:
    graph = graph_of(constant("a", "note: x"))
    with pytest.raises(json.JSONDecodeError):
        old_reader(write(graph))
    assert old_reader(write_compatible(graph))["nodes"][0]["value"] == "note x"


def test_the_compatible_form_leaves_out_colons_and_nothing_else() -> None:
    graph = graph_of(
        Node("in", External("input://message")),
        constant("a", {"at": "10:30", "odd": "# {x}, ] [", "h": Hash32(bytes(32))}),
        constant("c", [b"\1", Confidence(0.5)]),
    )
    nodes = old_reader(write_compatible(graph))["nodes"]
    assert nodes[0]["uri"] == "message"
    assert nodes[1]["value"] == {"at": "1030", "odd": "# {x}, ] [", "h": "00" * 32}
    assert nodes[2]["value"] == ["01", 0.5]
    assert parse(write_compatible(graph)).nodes[0].type == External("message")


def test_what_older_readers_cannot_hold_is_refused() -> None:
    with pytest.raises(DuplicateId, match="without their colons"):
        write_compatible(graph_of(constant("a:b", 1), constant("ab", 1)))
    with pytest.raises(DuplicateId, match="without their colons"):
        write_compatible(graph_of(constant("a", {"x:y": 1, "xy": 2})))
    with pytest.raises(WrongValue, match="Strings alone"):
        write_compatible(graph_of(constant("a", "b"), Node("c", Lookup(Map({"b": 1})), ("a",))))
    way = Route((Condition("t", input="a", match_value=1),))
    with pytest.raises(WrongValue, match="Strings alone"):
        write_compatible(graph_of(constant("a", "b"), Node("c", way)))
