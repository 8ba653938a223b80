"""Which facts a turn is told, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.fact import Category, Fact, FactSource
from agentd.memory.index.ranking import fact_ranking as ranking
from agentd.memory.index.ranking import importance

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
shares = st.floats(0, 1, width=32)


def fact(source=FactSource.EXPLICIT, days=0.0, confidence=0.9) -> Fact:
    said = NOW - timedelta(days=days)
    return Fact("a", "The user.", Category.PERSONAL, source, confidence, said, said)


def leg(*scores: float):
    return np.array(scores, np.float32)


def test_first_in_both_legs_is_two_sixty_firsts() -> None:
    [score] = ranking.scores([leg(3.0), leg(0.8)], leg(0.0))
    assert score == pytest.approx(2 / 61)


def test_one_that_both_legs_found_is_before_one_that_a_single_leg_put_first() -> None:
    nowhere = -np.inf
    scores = ranking.scores([leg(9, 8, nowhere), leg(nowhere, 0.5, 0.9)], leg(1.0, 0.0, 1.0))
    assert scores.argmax() == 1


def test_a_fact_that_holds_far_less_of_the_words_than_the_best_is_not_named_by_them() -> None:
    assert ranking.is_said(leg(0.8, 0.4, 0.39, 0.0)).tolist() == [True, True, False, False]
    assert ranking.is_said(leg(0.3, 0.3)).tolist() == [True, True]
    assert not ranking.is_said(leg(0.0, 0.0)).any()
    assert not ranking.is_said(leg()).size


def test_a_weak_leg_counts_only_among_what_no_other_found() -> None:
    nowhere = -np.inf
    legs = [leg(1, nowhere, nowhere), leg(nowhere, 9, 8)]
    scores = ranking.scores(legs, leg(0.0, 1.0, 0.0), weak=1)
    assert scores[0] > scores[1] > scores[2] > 0


def test_confidence_decides_between_facts_of_equal_rank() -> None:
    sure, unsure = fact(confidence=0.9), fact(confidence=0.6)
    worths = leg(importance.worth(unsure, NOW), importance.worth(sure, NOW))
    scores = ranking.scores([leg(2.0, 2.0), leg(0.5, 0.5)], worths)
    assert scores[1] > scores[0]


def test_what_was_told_passes_what_was_extracted_one_rank_before_it() -> None:
    worths = leg(
        importance.worth(fact(FactSource.EXTRACTED, confidence=0.6), NOW),
        importance.worth(fact(FactSource.EXPLICIT), NOW),
    )
    scores = ranking.scores([leg(2.0, 1.9)], worths)
    assert scores[1] > scores[0]


@given(st.lists(shares, min_size=30, max_size=60), st.booleans())
def test_no_worth_lifts_rank_eight_or_later_over_rank_one(worths, both) -> None:
    ranked = np.arange(len(worths), 0, -1).astype(np.float32)
    scores = ranking.scores([ranked] * (1 + both), np.array(worths, np.float32))
    assert (scores[7:] < scores[0]).all()


def test_rank_thirty_with_all_the_worth_stays_behind_rank_one_without_any() -> None:
    ranked = np.arange(40, 0, -1).astype(np.float32)
    worths = np.zeros(40, np.float32)
    worths[29] = 1.0
    scores = ranking.scores([ranked, ranked], worths)
    assert scores[29] < scores[0]


def test_worth_sinks_by_a_twentieth_a_day_down_to_a_tenth() -> None:
    assert importance.worth(fact(days=1), NOW) == pytest.approx(0.9 * 0.95)
    assert importance.worth(fact(days=1000), NOW) == pytest.approx(0.9 * 0.1)
    assert importance.worth(fact(days=-5), NOW) == pytest.approx(0.9)


def test_what_stands_in_the_file_does_not_age() -> None:
    assert importance.worth(fact(FactSource.FILE, days=1000), NOW) == pytest.approx(0.9 * 0.8)


@given(st.sampled_from(FactSource), st.floats(-1e4, 1e6), st.floats(-1, 2, allow_nan=False))
def test_worth_lies_between_0_and_1(source, days, confidence) -> None:
    assert 0.0 <= importance.worth(fact(source, min(days, 7e5), confidence), NOW) <= 1.0


def test_a_turn_is_told_of_what_is_nearer_than_a_candidate_has_to_be() -> None:
    least, none = 0.35, leg(0.0, 0.0)
    found = ranking.relation(leg(least + 0.01, least + 0.1), none, least)
    assert (found >= 0).tolist() == [False, True]


def test_a_fact_that_holds_the_words_needs_less_nearness() -> None:
    assert ranking.relation(leg(0.3), leg(1.0), 0.35)[0] > 0
    assert ranking.relation(leg(0.3), leg(0.0), 0.35)[0] < 0


def test_without_vectors_the_share_of_the_words_decides() -> None:
    found = ranking.relation(None, leg(0.2, 0.5), 0.35)
    assert (found >= 0).tolist() == [False, True]


def test_the_threshold_is_on_the_scale_of_the_model() -> None:
    assert ranking.threshold("sentence-transformers/all-MiniLM-L6-v2@1") == 0.35
    assert ranking.threshold("static-minilm-256-abc") > 0.35
    assert ranking.threshold("static-minilm-256-abc", 0.5) > 0.5


def test_a_word_weighs_as_much_among_three_facts_as_among_two_hundred() -> None:
    assert ranking.rarity([1, 0], 3).tolist() == ranking.rarity([1, 0], 200).tolist()
    assert ranking.rarity([100], 200)[0] < ranking.rarity([1], 200)[0]


def test_a_near_copy_goes_behind_what_is_new() -> None:
    rows = np.array([[1, 0], [0.99, 0.14], [0, 1], [0, 0]], np.float32)
    assert ranking.diversify(leg(1.0, 0.9, 0.85, 0.0), rows) == [0, 2, 1, 3]


def test_without_vectors_the_order_stays() -> None:
    assert ranking.diversify(leg(3, 2, 1), np.zeros((3, 1), np.float32)) == [0, 1, 2]
    assert ranking.diversify(leg(), np.zeros((0, 1), np.float32)) == []


@given(st.lists(st.tuples(shares, shares, shares), min_size=1, max_size=20))
def test_variety_leaves_nobody_out_and_the_best_in_front(found) -> None:
    relevance = np.array([one for one, _, _ in found], np.float32)
    order = ranking.diversify(relevance, np.array([row for _, *row in found], np.float32))
    assert sorted(order) == list(range(len(found)))
    assert relevance[order[0]] == relevance.max()
