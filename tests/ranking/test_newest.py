from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking.newest import HEAD, behind, newest_first

ALIKE = np.array([1.0, 0.4, 0.1], np.float32)


def test_the_newest_of_what_is_about_the_same_leads_where_the_query_asks_how_it_stands():
    found = newest_first(ALIKE, [10, 20, 30], [5.0, 4.0, 3.0], state=0.9)
    assert found.order == (1, 0, 2)
    assert found.newer == {0: 1}


def test_a_query_about_what_happened_keeps_its_order():
    assert newest_first(ALIKE, [10, 20, 30], [5.0, 4.0, 3.0], state=0.1).order == (0, 1, 2)


def test_what_says_the_same_again_is_named_as_newer_whatever_is_asked():
    again = np.array([1.0, 0.9], np.float32)
    found = newest_first(again, [10, 20], [5.0, 4.0], state=0.1)
    assert found.order == (0, 1)
    assert found.newer == {0: 1}


def test_without_a_word_on_the_query_only_what_says_the_same_again_is_moved():
    assert newest_first(ALIKE, [10, 20, 30], [5.0, 4.0, 3.0], state=None).order == (0, 1, 2)
    again = np.array([1.0, 0.9], np.float32)
    assert newest_first(again, [10, 20], [5.0, 4.0], state=None).order == (1, 0)


def test_a_hit_far_less_likely_than_the_best_is_no_rival():
    found = newest_first(ALIKE, [10, 20, 30], [20.0, 4.0, 3.0], state=0.9)
    assert found.order == (0, 1, 2)


def test_the_very_same_text_is_no_newer_value():
    same = np.array([1.0, 1.0], np.float32)
    found = newest_first(same, [10, 20], [5.0, 4.0], state=0.9)
    assert (found.order, found.newer) == ((0, 1), {})


@pytest.mark.parametrize("days", [[-1, 20, 30], [10, -1, -1]])
def test_without_days_nothing_is_newer(days):
    found = newest_first(ALIKE, days, [5.0, 4.0, 3.0], state=0.9)
    assert (found.order, found.newer) == ((0, 1, 2), {})


@given(
    st.lists(
        st.tuples(
            st.floats(-1, 1, width=32), st.integers(-1, 50), st.floats(-20, 20, allow_nan=False)
        ),
        max_size=30,
    ),
    st.none() | st.floats(0, 1),
)
def test_each_hit_stays_once_and_what_is_newer_is_newer(hits, state):
    near = np.array([near for near, _, _ in hits], np.float32)
    days = [day for _, day, _ in hits]
    found = newest_first(near, days, [score for *_, score in hits], state)
    assert sorted(found.order) == list(range(len(hits)))
    assert found.order[HEAD:] == tuple(range(len(hits)))[HEAD:]
    assert all(0 <= days[old] < days[new] for old, new in found.newer.items())


def test_the_newer_takes_the_place_of_what_it_outdates():
    assert behind(4, {0: 2}) == [2, 0, 1, 3]
    assert behind(3, {2: 0}) == [0, 1, 2]
