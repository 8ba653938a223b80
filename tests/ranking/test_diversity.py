"""Near copies of better hits go down."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking.selection import by_terms, jaccard, mmr

term_sets = st.lists(st.frozensets(st.integers(0, 9)), min_size=1, max_size=12)


def order(relevance, terms, trade=0.7):
    likeness = by_terms([frozenset(one) for one in terms])
    return mmr(np.array(relevance, np.float32), likeness, trade)


@given(term_sets, st.data(), st.floats(-1.0, 2.0))
def test_every_candidate_comes_once_and_the_best_first(terms, data, trade):
    relevance = data.draw(
        st.lists(st.floats(0, 100, width=32), min_size=len(terms), max_size=len(terms))
    )
    found = order(relevance, terms, trade)
    assert sorted(found) == list(range(len(terms)))
    assert relevance[found[0]] == max(relevance)


@given(term_sets, st.integers(1, 12))
def test_the_first_are_those_that_all_begin_with(terms, most):
    relevance = np.arange(len(terms), 0, -1).astype(np.float32)
    likeness = by_terms(terms)
    assert mmr(relevance, likeness, 0.7, most) == mmr(relevance, likeness, 0.7)[:most]


def test_a_copy_goes_behind_what_is_new():
    assert order([10.0, 9.9, 8.0, 0.0], [{1, 2}, {1, 2}, {3, 4}, {5}]) == [0, 2, 1, 3]


def test_the_scale_of_relevance_does_not_matter():
    terms = [{1, 2}, {1, 2}, {3, 4}, {5}]
    assert order([0.010, 0.0099, 0.008, 0.0], terms) == order([100, 99, 80, 0], terms)


def test_relevance_alone_keeps_the_order():
    assert order([3.0, 2.0, 1.0], [{1}, {1}, {1}], trade=1.0) == [0, 1, 2]


def test_nothing_is_left_when_nothing_was_found():
    assert order([], []) == []
    assert jaccard(frozenset(), frozenset()) == 0.0
