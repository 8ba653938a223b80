"""The newest of several values comes first."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from agentd.ranking.newest import Said, newest_first, outdated, successors

EVEN = defaultdict(lambda: 1.0)


def said(terms, day, *, short=True, question=False):
    return Said(frozenset(terms), day, short, question)


RATE = {1, 2, 3}  # the day rate of somebody


def test_another_value_of_the_same_thing_is_superseded_by_the_newest():
    units = [said(RATE | {10}, 5), said(RATE | {11}, 9), said(RATE | {12}, 7)]
    assert outdated(units, frozenset(RATE), EVEN) == {0: 1, 2: 1}
    assert newest_first(3, {0: 1, 2: 1}, {}) == [1, 0, 2]


def test_outdated_values_are_newest_first_too_and_others_keep_their_places():
    days = (3, 8, 9, 1, 5)
    units = [said(RATE | {10 + at}, day) for at, day in enumerate(days)]
    units[1] = said({7, 8}, 8)
    newer = outdated(units, frozenset(RATE), EVEN)
    assert newer == {0: 2, 3: 2, 4: 2}
    later = successors(units, frozenset(RATE), EVEN, newer)
    assert later == {0: [4], 3: [4, 0], 4: []}
    assert newest_first(5, newer, later) == [2, 4, 1, 0, 3]


def test_an_outdated_value_that_says_less_of_the_query_stays_behind():
    asked = frozenset(RATE | {4})
    units = [said(asked | {10}, 9), said(asked | {11}, 1), said(RATE | {12}, 5)]
    newer = outdated(units, asked, EVEN)
    assert newer == {1: 0, 2: 0}
    assert newest_first(3, newer, successors(units, asked, EVEN, newer)) == [0, 1, 2]


def test_the_same_words_again_supersede_nothing():
    units = [said(RATE | {10}, 5), said(RATE | {10}, 9), said(RATE | {10, 11}, 11)]
    assert outdated(units, frozenset(RATE), EVEN) == {}


def test_a_question_supersedes_nothing():
    units = [said(RATE | {10}, 5), said(RATE | {11}, 9, question=True)]
    assert outdated(units, frozenset(RATE), EVEN) == {}


def test_what_is_retold_supersedes_nothing_and_is_superseded():
    again = Said(frozenset(RATE | {11}), 9, True, False, retold=True)
    units = [said(RATE | {10}, 5), again, said(RATE | {12}, 11)]
    assert outdated(units[:2], frozenset(RATE), EVEN) == {}
    assert outdated(units, frozenset(RATE), EVEN) == {0: 2, 1: 2}


def test_what_says_it_of_another_supersedes_nothing():
    units = [said({1, 2, 3, 10}, 5), said({1, 2, 4, 11}, 9)]
    weights = EVEN | {3: 9.0, 4: 9.0}
    assert outdated(units, frozenset({1, 2, 3}), weights) == {}


def test_undated_units_are_neither_older_nor_newer():
    units = [said(RATE | {10}, -1), said(RATE | {11}, 9)]
    assert outdated(units, frozenset(RATE), EVEN) == {}
    assert outdated(units[::-1], frozenset(RATE), EVEN) == {}


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=12), st.data())
def test_the_newest_comes_before_all_that_it_supersedes(drawn, data):
    count, days = len(drawn), [day for day, _ in drawn]
    pairs = data.draw(
        st.dictionaries(st.integers(0, count - 1), st.integers(0, count - 1), max_size=count)
    )
    newest = set(pairs.values())
    newer = {old: new for old, new in pairs.items() if old not in newest and old != new}
    later = {
        old: [o for o, same in newer.items() if same == new and days[o] > days[old] and drawn[o][1]]
        for old, new in newer.items()
    }
    order = newest_first(count, newer, later)
    assert sorted(order) == list(range(count))
    assert all(order.index(new) < order.index(old) for old, new in newer.items())
    assert all(order.index(o) < order.index(old) for old, some in later.items() for o in some)


def test_what_gives_no_figure_supersedes_no_figure():
    figure, none = (Said(frozenset(RATE | {10}), 5, True, False, f) for f in (True, False))
    newer = Said(frozenset(RATE | {11}), 9, True, False, figures=False)
    assert outdated([figure, newer], frozenset(RATE), EVEN) == {}
    assert outdated([none, newer], frozenset(RATE), EVEN) == {0: 1}
