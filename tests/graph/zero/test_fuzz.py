"""Damaged and hostile texts: a ZeroError with line and column, or a graph; nothing else, and
soon.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import ZeroError
from agentd.testing.clock import FakeClock
from agentd.zero import Host, ProgramLimits, execute, parse, write
from tests.graph.zero.graphs import EVERYTHING, MemoryHost, example

PIECES = (
    "{", "}", "[", "]", "(", ")", ":", ",", '"', "\\", "#", "\n", "\0", "\ud800", "\u2028", "Graph", "null",
    "true", "-", "1e999", "9" * 30, "0.5", "Confidence(0.5)", "Bytes(", '"a.b"', '"way"', '"\\ud800"',
    "[" * 100, "{a:" * 100, "SaveState", "MemoryStore", "Concat", "SetField", "Sign", "Route", "params: {",
    'inputs: ["both", "both"],', "id: ", '{ id: "x", type: Constant, value: 1 },',
)  # fmt: skip
LIMITS = ProgramLimits(work=1_000_000)


def mutations(text: str, count: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        found = text
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(found) + 1)
            end = min(len(found), start + chance.choice((0, 1, 1, 3, 20, 200)))
            match chance.randrange(5):
                case 0:
                    found = found[:start] + found[end:]
                case 1:
                    found = found[:start] + chance.choice(PIECES) + found[start:]
                case 2:
                    found = found[:start] + chance.choice(PIECES) + found[end:]
                case 3:
                    found = found[:start] + found[start:end] * 2 + found[end:]
                case _:
                    found = found[:start] + chr(chance.randrange(0x250)) + found[start + 1 :]
        yield found


OUTCOMES = {"ran", "BadSyntax", "BadShape", "UnknownId", "MissingInput", "WrongValue"}


def outcome(data: str | bytes) -> str:
    """What became of the text: the name of the error or `ran`."""
    host = Host(FakeClock(), b"key", MemoryHost(), MemoryHost())
    try:
        graph = parse(data)
        run = execute(graph, {"message": "/help me"}, host=host, limits=LIMITS)
    except ZeroError as error:
        place, name = (error.line, error.column), type(error).__name__
    else:
        place, name = (1, 1), "ran"
        assert len(run.trace) == len(graph.nodes)
        assert parse(write(graph)) == graph
    assert min(place) >= 1
    return name


def test_damaged_texts_are_refused_in_order() -> None:
    assert {outcome(text) for text in mutations(EVERYTHING, 1500, seed=1)} >= OUTCOMES


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join) | st.binary()
)
def test_any_text_is_refused_in_order(data: str | bytes) -> None:
    assert outcome(data)
    assert outcome(f"Graph {{ nodes: [{data!s}] }}")


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_damaged_texts_are_refused_in_order() -> None:
    found = set()
    for seed in range(10):
        found |= {outcome(text) for text in mutations(EVERYTHING, 9_800, seed)}
        for name in ("schema", "example_memory"):
            for text in mutations(example(name), 100, seed):
                found.add(outcome(text.encode(errors="surrogatepass")))
    assert found >= OUTCOMES
