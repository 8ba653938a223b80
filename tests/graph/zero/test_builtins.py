"""What each operation makes of its inputs, and what it refuses."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

import pytest

from agentd.testing.clock import FakeClock
from agentd.zero import Array, Confidence, Hash32, Host, Map, execute, operation
from agentd.zero.builtins import BUILTINS
from agentd.zero.faults import MissingInput, Unavailable, UnknownOperation, WrongValue
from agentd.zero.program_graph import Constant, Node
from agentd.zero.statements import SemanticTuple
from agentd.zero.values import encode
from tests.graph.zero.graphs import MemoryHost, apply, graph_of, run_one

AGENT = "d4f0bc5a29de06b510f9aa428f1eedba926012b591fef7a518e776a7c9bd1824"


def test_there_are_the_operations_that_graphs_use() -> None:
    names = """
        Identity StartsWith EndsWith Contains ExtractFirstWord ExtractParams Concat Split Trim ToLower
        ToUpper Length GetField SetField CreateMap MergeMap ArrayPush ArrayGet Multiply Add Subtract
        Divide Equals NotEquals GreaterThan LessThan And Or Not If Hash Sign Verify Timestamp
        ClassifyIntent LoadState SaveState MemoryStore MemoryRecall
    """
    assert set(BUILTINS) == set(names.split())
    assert len(BUILTINS) == 37 + 2


@pytest.mark.parametrize(
    ("op", "inputs", "params", "expected"),
    [
        ("Identity", [None], {}, None),
        ("StartsWith", ["/help me"], {"prefix": "/"}, True),
        ("EndsWith", ["/help me"], {"suffix": "/"}, False),
        ("Contains", ["/help me"], {"pattern": "lp m"}, True),
        ("ExtractFirstWord", ["  /help me "], {}, "/help"),
        ("ExtractFirstWord", [" "], {}, ""),
        ("ExtractParams", [" set  alarm 7 "], {}, ["alarm", "7"]),
        ("ExtractParams", [""], {}, []),
        ("Concat", ["a", "b", "c"], {"separator": "|"}, "a|b|c"),
        ("Concat", ["a", "b"], {}, "ab"),
        ("Split", ["a b  c"], {}, ["a", "b", "", "c"]),
        ("Split", ["a, b"], {"separator": ", "}, ["a", "b"]),
        ("Trim", ["\t a \n"], {}, "a"),
        ("ToLower", ["ÄB"], {}, "äb"),
        ("ToUpper", ["äß"], {}, "ÄSS"),
        ("Length", ["äö😀"], {}, 3),
        ("Length", [b"abc"], {}, 3),
        ("Length", [[1, 2]], {}, 2),
        ("Length", [{"a": 1}], {}, 1),
        ("GetField", [{"a": 1}], {"field": "a"}, 1),
        ("GetField", [{"a": 1}], {"field": "b"}, None),
        ("SetField", [{"a": 1}, 2], {"field": "a"}, {"a": 2}),
        ("CreateMap", [], {"a": [1]}, {"a": [1]}),
        ("MergeMap", [{"a": 1, "b": 1}, {"b": 2}], {}, {"a": 1, "b": 2}),
        ("MergeMap", [], {}, {}),
        ("ArrayPush", [[1], [2]], {}, [1, [2]]),
        ("ArrayGet", [[1, 2]], {"index": 1}, 2),
        ("ArrayGet", [[1, 2]], {"index": 2}, None),
        ("Multiply", [2, 3], {}, 6),
        ("Multiply", [2, 0.5], {}, 1.0),
        ("Multiply", [Confidence(0.5), Confidence(0.5)], {}, Confidence(0.25)),
        ("Multiply", [Confidence(0.5), 2], {}, 1.0),
        ("Add", [1, 2, 3], {}, 6),
        ("Add", [0.1] * 10, {}, 1.0),
        ("Subtract", [1, 3], {}, -2),
        ("Subtract", [1.5, 3], {}, -1.5),
        ("Divide", [1, 4], {}, 0.25),
        ("Equals", ["a", "a"], {}, True),
        ("Equals", [1, 1.0], {}, False),
        ("Equals", [1, True], {}, False),
        ("Equals", [0.5, Confidence(0.5)], {}, False),
        ("Equals", ["ab", b"ab"], {}, False),
        ("Equals", [{"a": 1, "b": [2]}, {"b": [2], "a": 1}], {}, True),
        ("Equals", [{"a": 1}, {"a": True}], {}, False),
        ("Equals", [0.0, -0.0], {}, True),
        ("Equals", ["a"], {"compare": "a"}, True),
        ("NotEquals", [None, False], {}, True),
        ("GreaterThan", [2, 1.5], {}, True),
        ("LessThan", [Confidence(0.2), 0.2], {}, False),
        ("And", [1, "a", Hash32(bytes(32))], {}, True),
        ("And", [1, ""], {}, False),
        ("Or", [None, 0, 0.0, "", b"", [], {}, False, Confidence(0.0)], {}, False),
        ("Or", [None, Confidence(0.1)], {}, True),
        ("Not", [[]], {}, True),
        ("If", [1, "then", "else"], {}, "then"),
        ("If", [0, "then", "else"], {}, "else"),
        ("If", [0, "then"], {}, None),
        ("Hash", ["agent"], {}, Hash32.from_hex(AGENT)),
        ("Hash", [b"ag", "ent"], {}, Hash32.from_hex(AGENT)),
        ("Hash", [Hash32(b"a" * 32), Hash32(b"b" * 32)], {},
         Hash32(sha256(b"a" * 32 + b"b" * 32).digest())),
        ("ClassifyIntent", ["Hey, you"], {}, "greeting"),
        ("ClassifyIntent", ["history is long"], {}, "statement"),
        ("ClassifyIntent", ["Where is it?"], {}, "question"),
        ("ClassifyIntent", ["Please go"], {}, "request"),
        ("ClassifyIntent", ["Please go"], {"classes": ["greeting", "other"]}, "other"),
    ],
)  # fmt: skip
def test_operations_make_what_they_are_for(
    op: str, inputs: list[Any], params: dict[str, Any], expected: Any
) -> None:
    made = apply(op, *inputs, **params)
    same = apply("Equals", made, expected)
    assert same is True, made


@pytest.mark.parametrize(
    ("op", "inputs", "params", "words"),
    [
        ("StartsWith", [5], {"prefix": "/"}, "needs a String as input 1, and this is of kind Int"),
        ("StartsWith", ["a"], {}, "needs the parameter 'prefix', a String"),
        ("StartsWith", ["a"], {"prefix": 1}, "the parameter 'prefix' of StartsWith is a String"),
        (
            "StartsWith",
            ["a"],
            {"prefix": "a", "sufix": "b"},
            "no parameter 'sufix'; it has: prefix",
        ),
        ("Trim", ["a"], {"x": 1}, "it has: none"),
        ("Concat", ["a", 1], {}, "a String as input 2"),
        ("Split", ["a"], {"separator": ""}, "a separator that is not empty"),
        ("Length", [5], {}, "needs a Map"),
        ("GetField", [[1]], {"field": "a"}, "needs a Map as input 1, and this is of kind Array"),
        ("MergeMap", [{"a": 1}, None], {}, "needs a Map as input 2, and this is of kind Null"),
        ("ArrayGet", [[1, 2]], {"index": -1}, "an Int from 0 to"),
        ("ArrayGet", [[1, 2]], {"index": True}, "an Int from 0 to"),
        ("ArrayGet", [[1, 2]], {}, "needs the parameter 'index'"),
        ("ArrayPush", [{}, 1], {}, "needs an Array"),
        ("Add", [1, True], {}, "needs a number as input 2, and this is of kind Bool"),
        ("Add", [2**63 - 1, 1], {}, "does not fit into 64 bits"),
        ("Add", [1e308, 1e308], {}, "not finite"),
        ("Multiply", [2**62, 2], {}, "does not fit into 64 bits"),
        ("Multiply", [1e308, 10.0], {}, "not finite"),
        ("Subtract", [-(2**63), 1], {}, "does not fit into 64 bits"),
        ("Divide", [1, 0], {}, "cannot divide by zero"),
        ("Divide", [1, 0.0], {}, "cannot divide by zero"),
        ("Divide", [1e308, 1e-308], {}, "not finite"),
        ("Equals", [1], {}, "a second input or the parameter 'compare'"),
        ("Equals", [1, 2], {"compare": 1}, "a second input or the parameter 'compare'"),
        ("ClassifyIntent", ["a"], {"classes": "a"}, "an Array of Strings"),
    ],
)
def test_operations_refuse_what_is_of_another_kind(
    op: str, inputs: list[Any], params: dict[str, Any], words: str
) -> None:
    with pytest.raises(WrongValue) as caught:
        apply(op, *inputs, **params)
    assert words in caught.value.message
    assert "node 'made'" in caught.value.message


@pytest.mark.parametrize(
    ("op", "count"),
    [("Identity", 0), ("Identity", 2), ("Concat", 0), ("If", 1), ("If", 4), ("CreateMap", 1),
     ("SetField", 1), ("Divide", 3), ("Hash", 0), ("Timestamp", 1), ("Verify", 1)],
)  # fmt: skip
def test_operations_count_their_inputs(op: str, count: int) -> None:
    with pytest.raises(MissingInput, match=rf"{op} takes .* not {count}"):
        apply(op, *["a"] * count)


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(UnknownOperation, match="node 'made': there is no operation 'JsonParse'"):
        apply("JsonParse", "a")


def test_the_hash_of_a_map_does_not_depend_on_its_order_but_on_kinds() -> None:
    one = apply("Hash", {"a": 1, "b": {"c": [True, None]}})
    assert one == apply("Hash", {"b": {"c": [True, None]}, "a": 1})
    others = [{"a": 1.0}, {"a": True}, {"a": "1"}, {"a": [1]}, {"a": Confidence(1.0)}, {"a": b"1"}]
    hashes = [apply("Hash", plain) for plain in ({"a": 1}, *others)]
    assert len(set(hashes)) == len(hashes)
    assert apply("Hash", ["ab", "c"]) != apply("Hash", ["a", "bc"])
    assert apply("Hash", {"a": "bc"}) != apply("Hash", {"ab": "c"})


def test_signatures_need_the_key_and_the_very_value() -> None:
    host = Host(key=b"secret")
    signature = apply("Sign", {"a": 1}, host=host)
    assert isinstance(signature, bytes)
    assert signature == hmac.digest(b"secret", encode(Map({"a": 1})), "sha256")
    assert apply("Verify", {"a": 1}, signature, host=host) is True
    assert apply("Verify", {"a": 2}, signature, host=host) is False
    assert apply("Verify", {"a": 1}, signature[:-1], host=host) is False
    assert apply("Verify", {"a": 1}, signature, host=Host(key=b"other")) is False
    text = apply("Sign", "1", host=host)
    assert apply("Verify", b"1", text, host=host) is False
    assert "secret" not in repr(host)
    with pytest.raises(WrongValue, match="Bytes of a signature"):
        apply("Verify", 1, "text", host=host)


@pytest.mark.parametrize(
    ("op", "inputs", "words"),
    [
        ("Sign", ["a"], "needs a key"),
        ("Verify", ["a", b"b"], "needs a key"),
        ("Timestamp", [], "needs a clock"),
        ("LoadState", ["a"], "needs a store of states"),
        ("SaveState", ["a", 1], "needs a store of states"),
        ("MemoryStore", [{}], "needs a memory"),
        ("MemoryRecall", ["a"], "needs a memory"),
    ],
)
def test_what_a_run_was_not_given_is_refused(op: str, inputs: list[Any], words: str) -> None:
    with pytest.raises(Unavailable) as caught:
        apply(op, *inputs)
    assert words in caught.value.message
    assert caught.value.cure


def test_a_timestamp_is_in_milliseconds_of_the_clock() -> None:
    clock = FakeClock()
    assert apply("Timestamp", host=Host(clock=clock)) == clock.now().timestamp() * 1000


def test_states_are_loaded_and_what_is_saved_is_handed_over() -> None:
    host = Host(states=MemoryHost(known=Map({"n": 1})))
    assert apply("LoadState", "known", host=host) == Map({"n": 1})
    assert apply("LoadState", "unknown", host=host) is None
    run = run_one("SaveState", "key", [1], host=host)
    assert (run.saved, run.outputs["made"]) == ({"key": Array([1])}, Array([1]))


def test_a_state_saved_in_a_run_is_seen_by_what_runs_behind_it() -> None:
    host = Host(states=MemoryHost(key="old"))
    run = execute(
        graph_of(
            Node("key", Constant("key")),
            Node("value", Constant("new")),
            operation("saved", "SaveState", "key", "value"),
            operation("loaded", "LoadState", "key"),
        ),
        host=host,
    )
    assert run.outputs["loaded"] == "new"


def test_statements_are_stored_from_maps_or_from_two_inputs() -> None:
    host = Host(memories=MemoryHost())
    one = run_one("MemoryStore", {"subject": "a", "predicate": "needs", "object": "b"}, host=host)
    assert one.stored == (SemanticTuple("a", "needs", "b", 1.0),)
    two = run_one("MemoryStore", "a", "b", host=host, predicate="needs", confidence=Confidence(0.5))
    assert two.stored == (SemanticTuple("a", "needs", "b", 0.5),)
    assert two.outputs["made"] == Map(
        {"subject": "a", "predicate": "needs", "object": "b", "confidence": Confidence(0.5)}
    )


@pytest.mark.parametrize(
    "statement",
    [{}, {"subject": "a", "predicate": " ", "object": "b"},
     {"subject": "a", "predicate": "p", "object": 5},
     {"subject": "a", "predicate": "p", "object": "b", "confidence": 2},
     {"subject": "a", "predicate": "p", "object": "b", "colour": "red"}],
)  # fmt: skip
def test_half_a_statement_is_not_stored(statement: dict[str, Any]) -> None:
    with pytest.raises(WrongValue, match="MemoryStore needs"):
        apply("MemoryStore", statement, host=Host(memories=MemoryHost()))


def test_memories_are_recalled_as_maps_and_no_more_than_asked_for() -> None:
    memory = MemoryHost()
    found = apply("MemoryRecall", "agent", host=Host(memories=memory), limit=2, depth=1)
    assert isinstance(found, Array)
    assert [entry["object"] for entry in found if isinstance(entry, Map)] == ["thing 0", "thing 1"]
    apply("MemoryRecall", "agent", host=Host(memories=memory), predicate="needs")
    assert memory.asked == [("agent", "", 1, 2), ("agent", "needs", 3, 50)]
    with pytest.raises(WrongValue, match="an Int from 1 to 8"):
        apply("MemoryRecall", "agent", host=Host(memories=memory), depth=9)
