import hashlib
import tracemalloc
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import GraphError
from agentd.core.graph import Record
from agentd.zero.delta import Delta, diff, read_delta, write_delta
from agentd.zero.formats.reading import read
from agentd.zero.formats.seal import MOST_CHARS, decode_text, plain, seal_lines
from agentd.zero.formats.writing import write
from tests.graph.formats.records import concept, context, grown, relation
from tests.growth import QUADRATIC, growth

SMALL, OTHER = grown(6), grown(4, seed=9)
NASTY = concept("a:b>c,d=e\\f\n", 0.5, aliases=("x,y", "z=:"))
SAID = context(source="a:b", agent="ada", session="chat:1")
MARKED = Record(
    (NASTY,), (SAID,), (relation(NASTY, "is>a", NASTY, SAID, denied=True, refs=("r",)),)
)
SEEDS = [
    *(write(one) for one in (SMALL, MARKED)),
    write_delta(diff(SMALL, OTHER)),
    write_delta(diff(OTHER, MARKED)),
]
PIECES = [
    "C:",
    "R:",
    "X:",
    "H:",
    "D:",
    "-R:",
    "0M:1.0",
    ":",
    ">",
    ",",
    "=",
    "\\",
    "\\u{",
    "}",
    "\n",
]
PIECES += [
    "\r\n",
    "c=",
    "t=",
    "d=1",
    "1e-999",
    "9" * 400,
    "\x00",
    "\u2028",
    "0" * 64,
    "#",
    "é",
    "\ud800",
]


def outcome(text, reader):
    """What was read, or the error, which must say where it stands in the text."""
    try:
        return reader(text)
    except GraphError as caught:
        error = caught
    lines = text.split("\n")
    assert 1 <= error.line <= max(2, len(lines)), error
    assert 1 <= error.column <= 1 + max(map(len, lines)), error
    assert error.cure
    return error


def resealed(text):
    """The text with the seal that fits it, so that what is below the seal is looked at."""
    return seal_lines(line for line in text.split("\n") if not line.startswith("H:"))


def judge(text):
    """What every reader makes of it, with the seal as it is and with one that fits."""
    kinds = []
    for form in (text, resealed(text)) if text.isascii() else (text,):
        for reader in (read, lambda given: read(given, is_sealed=False), read_delta):
            found = outcome(form, reader)
            kinds.append(type(found))
            if isinstance(found, Record):
                assert read(write(found)) == found
            elif isinstance(found, Delta):
                assert read_delta(write_delta(found)) == found
            else:
                assert isinstance(found, GraphError)
    return kinds


def mutated(chance):
    text = chance.choice(SEEDS)
    for _ in range(chance.randint(1, 4)):
        at, size = chance.randint(0, len(text)), chance.randint(0, 12)
        match chance.randrange(5):
            case 0:
                text = text[:at] + text[at + size :]
            case 1:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + chr(chance.randrange(256)) + text[at + 1 :]
            case 3:
                text = text[:at] + text[at : at + size] * chance.randint(2, 9) + text[at:]
            case _:
                other = chance.choice(SEEDS)
                text = text[:at] + other[chance.randint(0, len(other)) :]
    return text


def run(count, seed):
    """How often what was made of so many damaged texts."""
    chance = Random(seed)
    return Counter(kind for _ in range(count) for kind in judge(mutated(chance)))


def test_damaged_texts_are_read_or_refused_with_a_place():
    found = run(1_500, seed=1)
    assert min(found[Record], found[Delta]) > 10
    assert found.total() > 3 * 1_500


@pytest.mark.torture
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_hundred_thousand_damaged_texts_are_read_or_refused_with_a_place(seed):
    found = run(10_000, seed)
    assert min(found[Record], found[Delta]) > 100


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8)).map("".join))
def test_any_text_is_read_or_refused_with_a_place(text):
    for given_text in (text, f"0M:1.0\n{text}"):
        for reader in (read, lambda one: read(one, is_sealed=False), read_delta):
            assert isinstance(outcome(given_text, reader), Record | Delta | GraphError)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_text_or_are_refused_with_a_place(data):
    try:
        text = decode_text(data)
    except GraphError as caught:
        text, error = None, caught
    if text is None:
        assert 1 <= error.line <= data.count(b"\n") + 1
        assert 1 <= error.column <= len(data)
    else:
        assert text.encode() == data


@pytest.mark.parametrize(
    ("line", "filling", "size"),
    [
        ("C:1:{}", "\\\\", 40_000),
        ("X:1:t=2026-02-18T12:00:00Z,src={},scope=", "\\:", 40_000),
        ("C:1:a:{}a=z", "a=b,", 12_000),
    ],
)
def test_a_long_line_takes_time_in_proportion(line, filling, size):
    def work(times):
        text = plain(["0M:1.0", line.replace("{}", filling * times, 1)])
        return outcome(text, lambda given: read(given, is_sealed=False))

    assert growth(work, size) < QUADRATIC


def test_many_lines_take_time_in_proportion():
    def work(size):
        digest = hashlib.sha256(b"a").hexdigest()
        time = "t=2026-02-18T12:00:00Z"
        lines = [f"X:{n}:{time},src={n},scope=" for n in range(1, size)]
        lines += [f"C:{n}:a{n}" for n in range(1, size)]
        lines += [f"R:{n}>is>1:1" for n in range(1, size)]
        assert len(read(plain(["0M:1.0", *lines]), is_sealed=False).relations) == size - 1
        return digest

    assert growth(work, 150) < QUADRATIC


def test_a_text_without_end_is_refused_before_it_is_taken_apart():
    text = "0M:1.0\n" + "C" * MOST_CHARS
    tracemalloc.start()
    try:
        with pytest.raises(GraphError, match="line 1, column 1: the text has"):
            read(text, is_sealed=False)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_memory_stays_in_proportion_to_the_text():
    text = plain(
        ["0M:1.0", "X:1:t=2026-02-18T12:00:00Z,src=,scope=", *["C:1:a:a=" + "b,a=" * 20_000]]
    )
    tracemalloc.start()
    try:
        outcome(text, lambda given: read(given, is_sealed=False))
        assert tracemalloc.get_traced_memory()[1] < 100 * len(text)
    finally:
        tracemalloc.stop()
