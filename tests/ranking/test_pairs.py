"""Which of many texts are near each other."""

from __future__ import annotations

import numpy as np
import pytest

from agentd.ranking.pairs import neighbours


def packed(*numbers):
    return np.asarray(numbers, "<f4").tobytes()


VECTORS = {
    "a": packed(1.0, 0.0),
    "b": packed(9.0, 1.0),
    "c": packed(0.0, 2.0),
    "d": packed(1.0, 1.0),
}


def test_the_nearest_come_first_whatever_their_length_is():
    found = neighbours(VECTORS, ["a", "c"], 0.5, 8)
    assert [name for name, _ in found["a"]] == ["b", "d"]
    assert found["a"][0][1] == pytest.approx(9 / 82**0.5)
    assert [name for name, _ in found["c"]] == ["d"]


def test_only_so_many_and_only_for_the_names_that_were_asked():
    found = neighbours(VECTORS, ["a", "nobody"], -1.0, 2)
    assert list(found) == ["a"]
    assert len(found["a"]) == 2


def test_what_is_no_vector_is_near_nothing():
    odd = {"a": packed(1.0, 0.0), "z": packed(0.0, 0.0), "n": packed(np.nan, np.inf), "s": b"1234"}
    assert neighbours(odd, list(odd), 0.1, 8) == {}
    assert neighbours({"a": packed(1.0)}, ["a"], 0.1, 8) == {}
    assert neighbours({}, [], 0.1, 8) == {}


def test_more_rows_than_fit_a_block_are_all_compared():
    angles = np.linspace(0, 1, 200)
    many = {f"v{n}": packed(np.cos(a), np.sin(a)) for n, a in enumerate(angles)}
    found = neighbours(many, list(many), 0.9999, 2)
    assert len(found) == 200
    assert {name for name, _ in found["v150"]} <= {"v149", "v151"}
