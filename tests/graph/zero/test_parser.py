"""What the reader accepts, and where it says that something is wrong."""

from __future__ import annotations

import pytest

from agentd.core.errors import GraphError, ZeroError
from agentd.zero import Array, Confidence, Graph, Hash32, Map, Value, parse, parse_all
from agentd.zero.faults import (
    BadShape,
    BadSyntax,
    CycleFound,
    DuplicateId,
    LimitReached,
    NotText,
    UnknownId,
    WrongValue,
)
from agentd.zero.program_graph import Constant, Operation
from agentd.zero.tokens import MAX_TEXT
from tests.graph.zero.graphs import EVERYTHING

HASH = "ab" * 32
TWICE = """Graph { nodes: [{ id: "a", type: Constant, value: 1 },
{ id: "a", type: Constant, value: 1 }] }"""


def value(text: str) -> Value:
    graph = parse(f'Graph {{ nodes: [{{ id: "a", type: Constant, value: {text} }}] }}')
    assert isinstance(graph.nodes[0].type, Constant)
    return graph.nodes[0].type.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", None),
        ("true", True),
        ("-12", -12),
        ("9223372036854775807", 2**63 - 1),
        ("1.0", 1.0),
        ("-2.5e-3", -0.0025),
        ("1E2", 100.0),
        ('"word: # { } , ] \\"quoted\\""', 'word: # { } , ] "quoted"'),
        ('"\\u00e9\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\\\"', "é😀/\b\f\n\r\t\\"),
        ("bare-word", "bare-word"),
        ('"😀\tü"', "😀\tü"),
        ("[1, [2], {},]", Array([1, Array([2]), Map()])),
        ('{ a: 1, "b c": [true], }', Map({"a": 1, "b c": Array([True])})),
        ('Bytes("00ff")', b"\x00\xff"),
        (f'Hash32("{HASH}")', Hash32.from_hex(HASH)),
        ("Confidence(0.25)", Confidence(0.25)),
        ("HaltingProof { max_steps: 5 }", Map({"type": "HaltingProof", "max_steps": 5})),
        ("# comment }\n 1 # another ]\n", 1),
    ],
)
def test_values_are_read_as_their_own_kind(text: str, expected: Value) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_a_graph_is_read_with_all_its_types_of_nodes() -> None:
    graph = parse(EVERYTHING)
    assert [type(node.type).__name__ for node in graph.nodes[:7]] == [
        "External", "Constant", "Operation", "Operation", "Lookup", "Permission", "Route",
    ]  # fmt: skip
    assert graph.nodes[3].params == Map({"prefix": "/"})
    assert graph.nodes[4].inputs == ("word",)
    assert (graph.nodes[3].line, graph.nodes[3].column) == (8, 9)
    assert (graph.entry_point, graph.metadata) == ("message", Map({"tags": Array(["test"])}))


def test_unknown_fields_are_kept_where_they_belong() -> None:
    graph = parse(
        'Graph { proofs: [Halting { steps: 5 }], metadata: { a: 1 }, nodes: [{ id: "a", type: '
        'Operation, op: GetField, field: "x", inputs: ["a2"], description: "why" }, { id: "a2", '
        "type: Constant, value: {}, note: 1 }] }"
    )
    assert graph.metadata["a"] == 1
    assert graph.metadata["proofs"] == Array([Map({"type": "Halting", "steps": 5})])
    assert (graph.nodes[0].params["field"], graph.nodes[0].description) == ("x", "why")
    assert graph.nodes[1].params == Map({"note": 1})


def test_several_graphs_stand_behind_each_other_in_one_text() -> None:
    text = "# first\nGraph { nodes: [] }"
    assert parse_all("") == ()
    assert parse_all(text + "\n" + EVERYTHING) == (Graph("", (), ()), parse(EVERYTHING))
    with pytest.raises(BadSyntax, match="line 2, column 21"):
        parse(text + " Graph { nodes: [] }")


def node(rest: str) -> str:
    return f'Graph {{\n  nodes: [{{ id: "a", {rest} }}],\n}}'


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("", BadSyntax, (1, 1)),
        ("Grph { }", BadSyntax, (1, 1)),
        ("Graph", BadSyntax, (1, 6)),
        ("Graph {\n nodes: [\n", BadSyntax, (3, 1)),
        ("Graph { nodes: [] } x", BadSyntax, (1, 21)),
        ("Graph { nodes: [], nodes: [] }", BadSyntax, (1, 20)),
        ("Graph { name: 'a' }", BadSyntax, (1, 15)),
        ("Graph {\n\tname: \"a\\qb\" }", BadSyntax, (2, 10)),
        ('Graph { name: "\\ud800x" }', BadSyntax, (1, 16)),
        ('Graph { name: "\\udc00" }', BadSyntax, (1, 16)),
        ('Graph { name: "\\u12" }', BadSyntax, (1, 16)),
        ('Graph { name: "open\n" }', BadSyntax, (1, 15)),
        ("Graph { name: 12ab }", BadSyntax, (1, 15)),
        ("Graph { name: - }", BadSyntax, (1, 15)),
        ("Graph { a 1 }", BadSyntax, (1, 11)),
        ("Graph { a: 1 b: 2 }", BadSyntax, (1, 14)),
        ("Graph { a: 1,, b: 2 }", BadSyntax, (1, 14)),
        ("Graph { a: [1 2] }", BadSyntax, (1, 15)),
        ("Graph { a: {b: 1, b: 2} }", BadSyntax, (1, 19)),
        ("Graph { a: Nothing(1) }", BadSyntax, (1, 12)),
        ("Graph { a: Confidence(1.5) }", BadSyntax, (1, 12)),
        ('Graph { a: Hash32("ab") }', BadSyntax, (1, 12)),
        ('Graph { a: Bytes("0x") }', BadSyntax, (1, 12)),
        ("Graph { a: 9223372036854775808 }", WrongValue, (1, 12)),
        (f"Graph {{ a: {'9' * 5000} }}", BadSyntax, (1, 12)),
        ("Graph { a: 1e999 }", WrongValue, (1, 12)),
        ("Graph { a: " + "[" * 5000, LimitReached, (1, 76)),
        ("Graph { a: " + "{b:" * 5000, LimitReached, (1, 204)),
        ("Graph { }", BadShape, (1, 1)),
        ("Graph { name: 5, nodes: [] }", BadShape, (1, 9)),
        ("Graph { version: true, nodes: [] }", BadShape, (1, 9)),
        ("Graph { nodes: {} }", BadSyntax, (1, 16)),
        ("Graph { nodes: [1] }", BadSyntax, (1, 17)),
        (node("type: Constant"), BadShape, (2, 11)),
        (node("value: 1"), BadShape, (2, 11)),
        (node("type: Input"), BadShape, (2, 22)),
        (node("type: Operation, op: 5"), BadShape, (2, 39)),
        (node("type: Constant, value: 1, inputs: [1]"), BadShape, (2, 48)),
        (node("type: Constant, value: 1, params: { x: 1 }, x: 2"), BadShape, (2, 66)),
        (node("type: Permission, action: x, min_confidence: 2"), BadShape, (2, 51)),
        (node("type: Route, conditions: [5]"), BadShape, (2, 35)),
        (node("type: Route, conditions: [{ input: x }]"), BadShape, (2, 35)),
        (node("type: Route, conditions: [{ target: x, treshold: 1 }]"), BadShape, (2, 35)),
        (node("type: Operation, op: Identity, inputs: [b]"), UnknownId, (2, 11)),
        (node("type: Operation, op: Identity, inputs: [a]"), CycleFound, (2, 11)),
        ('Graph { nodes: [{ id: "a.b", type: Constant, value: 1 }] }', BadShape, (1, 19)),
        ('Graph { nodes: [{ id: "", type: Constant, value: 1 }] }', BadShape, (1, 19)),
        ("Graph { nodes: [], outputs: [x] }", UnknownId, (1, 1)),
        ("Graph { nodes: [], entry_point: x }", UnknownId, (1, 1)),
        (TWICE, DuplicateId, (2, 1)),
        (f"{node('type: Constant, value: {}')[:-1]} outputs: [\"a.b\"] }}", BadShape, (1, 1)),
        ("Graph { a: \ud800 }", NotText, (1, 12)),
        (b"Graph {\n a: \xff }", NotText, (2, 5)),
    ],
)  # fmt: skip
def test_every_mistake_has_its_line_and_column(
    text: str | bytes, kind: type[ZeroError], place: tuple[int, int]
) -> None:
    with pytest.raises(GraphError) as caught:
        parse(text)
    assert type(caught.value) is kind
    assert (caught.value.line, caught.value.column) == place
    assert caught.value.message.startswith(f"line {place[0]}, column {place[1]}: ")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (bytes(4) + (2).to_bytes(4, "little") + bytes(range(1, 17)), "compiled Cap'n Proto"),
        (b"\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0" + b"compiled" * 2, "compiled Cap'n Proto"),
        (b"\0\0\0\0cut", "binary data"),
        ("\0\0\0\0cut", "binary data"),
    ],
)
def test_compiled_graphs_are_recognised_and_refused(data: str | bytes, word: str) -> None:
    with pytest.raises(NotText, match=word) as caught:
        parse(data)
    assert caught.value.line == 1


def test_bytes_and_a_byte_order_mark_are_read_like_text() -> None:
    assert parse(EVERYTHING.encode()) == parse(EVERYTHING)
    assert parse("\ufeff" + EVERYTHING) == parse(b"\xef\xbb\xbf" + EVERYTHING.encode())


def test_a_text_or_a_value_in_it_may_be_too_large() -> None:
    with pytest.raises(LimitReached, match="line 1, column 12: a value would take"):
        parse("Graph { a: [" + "1," * 50_000 + f'"{"x" * 15_500_000}"] }}')
    with pytest.raises(LimitReached, match="line 1, column 1: the text has"):
        parse("#" * (MAX_TEXT + 1))


def test_an_operation_may_have_any_name_until_it_is_run() -> None:
    graph = parse('Graph { nodes: [{ id: "a", type: Operation, op: JsonParse }] }')
    assert graph.nodes[0].type == Operation("JsonParse")
