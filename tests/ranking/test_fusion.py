"""Two legs made one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking import fusion

NOWHERE = -np.inf
scores = st.lists(
    st.one_of(st.just(NOWHERE), st.floats(0.0, 50.0, width=32)), min_size=1, max_size=30
)


def column(*values):
    return np.array(values, np.float32)


def test_first_in_both_legs_is_two_sixty_firsts():
    fused = fusion.rrf([column(9, 1), column(0.8, NOWHERE)], (1.0, 1.0))
    assert fused[0] == pytest.approx(2 / 61)
    assert fused[1] == pytest.approx(1 / 62)


def test_what_both_legs_found_beats_what_one_found():
    fused = fusion.rrf([column(9, 8, NOWHERE), column(NOWHERE, 0.7, 0.9)], (1.0, 1.0))
    assert fused.argmax() == 1


def test_disjoint_legs_alternate_and_no_leg_gives_nothing():
    fused = fusion.rrf([column(9, NOWHERE), column(NOWHERE, 0.9)], (1.0, 1.0))
    assert fused[0] == fused[1] == np.float32(1 / 61)
    assert not fusion.rrf([column(NOWHERE), column(NOWHERE)], (1.0, 1.0)).any()
    assert not len(fusion.rrf([], ()))


@given(scores)
def test_ranks_alone_count(leg):
    leg = column(*leg)
    assert np.array_equal(fusion.rrf([leg], (1.0,)), fusion.rrf([leg * 2], (0.5,)))


@given(scores, st.randoms())
def test_fusion_does_not_depend_on_the_order_of_candidates(leg, random):
    order = list(range(len(leg)))
    random.shuffle(order)
    leg = column(*leg)
    for fuse in (fusion.rrf, fusion.weighted_mean):
        assert np.array_equal(fuse([leg], (1.0,))[order], fuse([leg[order]], (1.0,)))


def test_a_missing_leg_leaves_its_weight_to_the_other():
    assert fusion.weighted_mean([column(1.0, 0.4)], (0.3,)).tolist() == pytest.approx([1.0, 0.4])
    both = fusion.weighted_mean([column(1.0, 0.0), column(0.0, 1.0)], (0.3, 0.7))
    assert both.tolist() == pytest.approx([0.3, 0.7])


def test_weights_of_zero_count_alike():
    assert fusion.weighted_mean([column(1.0), column(0.0)], (0.0, 0.0)).tolist() == [0.5]


@given(scores)
def test_scaled_scores_lie_between_nought_and_one(leg):
    scaled = fusion.share_of_best(column(*leg))
    found = np.isfinite(scaled)
    assert np.array_equal(found, np.isfinite(column(*leg)))
    assert ((scaled[found] >= 0.0) & (scaled[found] <= 1.0)).all()
    if found.any() and column(*leg)[found].max() > 1e-6:
        assert scaled[found].max() == pytest.approx(1.0)


def test_the_weakest_of_good_matches_keeps_its_worth():
    assert fusion.share_of_best(column(8.0, 6.0, 4.0)).tolist() == [1.0, 0.75, 0.5]


def test_common_words_do_not_outvote_meaning():
    keyword, vector = fusion.trust(np.log(column(2.0, 5.0)), 1000, 0.0, vectors=True)
    assert keyword < 0.2
    assert vector == 1.0


def test_an_identifier_is_not_left_to_meaning():
    keyword, vector = fusion.trust(np.log(column(500.0)), 1000, 1.0, vectors=True)
    assert keyword == 1.0
    assert vector < 0.2


def test_a_query_without_known_words_is_left_to_meaning():
    assert fusion.trust(column(), 1000, 0.0, vectors=True) == (fusion.LEAST, 1.0)
    assert fusion.trust(column(), 1000, 0.0, vectors=False) == (1.0, 0.0)
