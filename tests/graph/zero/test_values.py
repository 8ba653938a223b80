"""Values keep their kinds, their names and their bounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given

from agentd.core.graph import ConceptHash
from agentd.zero import (
    Array,
    Confidence,
    Hash32,
    Map,
    Value,
    constant,
    execute,
    parse,
    value_of,
    write,
)
from agentd.zero.faults import WrongValue
from agentd.zero.values import digest, is_same, is_truthy, kind_of
from tests.graph.zero.graphs import example, graph_of
from tests.graph.zero.test_writer import VALUES

KINDS: list[tuple[str, Value, Value]] = [
    ("Null", None, None),
    ("Bool", True, False),
    ("Int", -1, 0),
    ("Float", 0.1, 0.0),
    ("String", " ", ""),
    ("Bytes", b"\0", b""),
    ("Array", Array([None]), Array()),
    ("Map", Map({"": None}), Map()),
    ("Hash32", Hash32(bytes(32)), Hash32(bytes(32))),
    ("Confidence", Confidence(0.1), Confidence(0.0)),
]


@pytest.mark.parametrize(("kind", "full", "empty"), KINDS)
def test_each_kind_has_its_name_and_its_truth(kind: str, full: Value, empty: Value) -> None:
    assert (kind_of(full), kind_of(empty)) == (kind, kind)
    assert is_truthy(full) == (kind != "Null")
    assert is_truthy(empty) == (kind == "Hash32")


def test_no_two_kinds_are_the_same_or_share_a_name() -> None:
    alike: list[Value] = [
        None, False, 0, 0.0, "", b"", Array(), Map(), Confidence(0.0), Hash32(bytes(32)), bytes(32), "0",
        True, 1, 1.0, Confidence(1.0), "1", Array([1]), Array([True]), Array([1.0]), Array([Array([1])]),
        Map({"1": 1}), Map({"1": True}), Array(["1", 1]), "\0" * 32, "00" * 32,
    ]  # fmt: skip
    for index, one in enumerate(alike):
        for place, other in enumerate(alike):
            assert is_same(one, other) == (index == place)
    assert len({digest(value) for value in alike}) == len(alike)


@given(VALUES, VALUES)
def test_values_are_the_same_when_their_texts_are(one: Value, other: Value) -> None:
    texts = [write(graph_of(constant("a", value))) for value in (one, other)]
    assume("-0.0" not in "".join(texts))
    assert (texts[0] == texts[1]) == is_same(one, other) == (digest(one) == digest(other))


def test_names_of_values_stay_what_they_were() -> None:
    run = execute(parse(example("example_memory")))
    assert run.hash.hex == "46bd0843f8e1e231e6c014fac19616cd991865d9ac4cd6e3d3ef1172ee76b1d9"


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ({"a": [1, (2, {})]}, Map({"a": Array([1, Array([2, Map()])])})),
        (ConceptHash(b"c" * 32), Hash32(b"c" * 32)),
        (-(2**63), -(2**63)),
    ],
)
def test_python_objects_become_values(plain: Any, expected: Value) -> None:
    assert value_of(plain) == expected
    assert kind_of(value_of(plain)) == kind_of(expected)


@pytest.mark.parametrize(
    "plain", [2**63, float("inf"), float("nan"), "\udc00", {1: 1}, {"\ud800": 1}, {1, 2}, object()]
)
def test_what_the_language_cannot_hold_is_refused(plain: Any) -> None:
    with pytest.raises(WrongValue):
        value_of([plain])


@pytest.mark.parametrize("sure", [-0.1, 1.1, float("nan")])
def test_a_confidence_lies_between_zero_and_one(sure: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Confidence(sure)
