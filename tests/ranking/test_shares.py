"""Chatter and echoes do not stand before what was written down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking.selection import answers_first, limit_share


def test_of_the_first_five_one_is_no_chatter():
    order = limit_share([True] * 1000 + [False], [True] * 1001, 0.8)
    assert order.index(1000) == 4
    assert order[:4] == [0, 1, 2, 3]


def test_what_is_far_from_the_best_does_not_pass_chatter():
    assert limit_share([True] * 9 + [False], [True] * 9 + [False], 0.8) == list(range(10))


def test_notes_alone_keep_their_order():
    assert limit_share([False] * 9, [True] * 9, 0.5) == list(range(9))


def test_an_echo_stands_behind_every_near_answer():
    assert answers_first([True, True, False, False], [True, True, True, False]) == [2, 0, 1, 3]


def test_echoes_stay_where_nothing_answers():
    assert answers_first([True, False], [True, False]) == [0, 1]


@pytest.mark.parametrize("share", [0.2, 0.6, 0.8])
@given(units=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
def test_every_unit_stays_once(share, units):
    chatter, near = [one for one, _ in units], [one for _, one in units]
    assert sorted(limit_share(chatter, near, share)) == list(range(len(units)))
    assert sorted(answers_first(chatter, near)) == list(range(len(units)))
