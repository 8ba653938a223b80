"""No pattern takes more than its share of time, whatever the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from tests import hostile

LONGEST = 64 * 1024  # characters
LIMIT = 0.1  # seconds of processor time for them
_SHORT, _HALF = 8192, LONGEST // 2
_HOPELESS = 0.3  # seconds after which one is given up
_TRIES = 3
# What takes less for a short text stays below the limit, even if it grows with the square of the
# length.
_SURELY_GOOD = LIMIT / (LONGEST / _SHORT) ** 2
_LINEAR = 5  # times as long for four times the text is hardly more than in proportion to it
_SURELY_GOOD_HALF = LIMIT / 2**3  # and for half of the text, even if it grows with the cube
_SLOWEST = 5  # of texts read in proportion to their length, so many stand for all

PATTERNS = hostile.patterns()


def too_slow(pattern: Any, methods: Iterable[str]) -> str:
    """A method and the beginning of a text that take longer than they may; "" if there are none."""

    def takes_too_long(text: str) -> bool:
        tries = (hostile.seconds(pattern, method, text, _HOPELESS) for _ in range(_TRIES))
        return not any(taken <= LIMIT for taken in tries)

    for method in sorted(methods):
        in_proportion: list[tuple[float, str]] = []
        for made in hostile.texts(pattern):
            short = hostile.seconds(pattern, method, made(_SHORT), LIMIT)
            if short < _SURELY_GOOD:
                continue
            half = hostile.seconds(pattern, method, made(_HALF), LIMIT)
            if half < _SURELY_GOOD_HALF:
                continue
            text = made(LONGEST)
            if half < min(_LINEAR * short, LIMIT):
                in_proportion.append((half, text))
            elif takes_too_long(text):
                return f"{method} {text[:80]!r}"
        for _, text in sorted(in_proportion, reverse=True)[:_SLOWEST]:
            if takes_too_long(text):
                return f"{method} {text[:80]!r}"
    return ""


@pytest.mark.parametrize("place", sorted(PATTERNS))
def test_a_pattern_reads_64_kib_of_hostile_text_in_100_ms(place: str) -> None:
    found = PATTERNS[place]
    assert not too_slow(found.pattern, found.methods)


def test_every_pattern_that_a_function_makes_is_among_them() -> None:
    assert not hostile.unread()


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s+$", "search"),  # the square of the length
        (r"\w+://\S+", "sub"),
        (r"/\*.*?\*/", "finditer"),
        (r'"(?:[^"\\]|\\.)*"', "finditer"),
        (r"\[\s*([^\[\]]+?)\s*\]", "match"),  # its cube
        (r"(?:\s|--+|-)+\Z", "search"),  # without measure
    ],
)
def test_a_pattern_that_takes_too_long_is_found(pattern: str, method: str) -> None:
    assert too_slow(re.compile(pattern), {method})


def test_one_that_does_not_is_not() -> None:
    assert not too_slow(re.compile(r"\b\w++://\S+"), {"sub"})
