from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking import confidence
from agentd.memory.index.ranking.fusion import FITTED
from agentd.memory.index.ranking.kinds import MOST, KindClassifiers, about

NEVER_FAR = np.zeros(2, np.float32)
SCORES = np.array([9.0, 4.0, 1.0], np.float32)
COVER = np.array([0.9, 0.2, 0.0], np.float32)


def test_better_evidence_makes_an_answer_likelier():
    weak = confidence.evidence(SCORES / 4, None, COVER / 4, 30, None)
    assert confidence.answer_probability(
        confidence.evidence(SCORES, None, COVER, 30, None), FITTED
    ) > (confidence.answer_probability(weak, FITTED))


def test_the_same_evidence_from_more_texts_says_less():
    near = np.array([0.8, 0.3], np.float32)
    few, many = (confidence.evidence(SCORES, near, COVER, texts, 0.5) for texts in (10, 3_000))
    assert confidence.answer_probability(few, FITTED) > confidence.answer_probability(many, FITTED)


def test_the_weights_follow_what_is_known():
    near = np.array([0.8, 0.3], np.float32)
    assert confidence.table(confidence.evidence(SCORES, None, COVER, 30, None)) == "keywords"
    assert confidence.table(confidence.evidence(SCORES, near, COVER, 30, None)) == "both"
    assert confidence.table(confidence.evidence(SCORES, near, COVER, 30, 0.5)) == "kind"


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=9), st.floats(0, 1, allow_nan=False)
)
def test_the_best_hit_has_the_confidence_of_the_search_and_none_has_more(certain, sure):
    scores = confidence.scale_scores(np.array(certain, np.float32), sure)
    assert float(scores.max()) <= sure + 1e-6
    if max(certain) > 1e-6:
        assert abs(float(scores.max()) - sure) < 1e-5
    assert (scores >= confidence.LEAST * sure - 1e-6).all()


def test_kinds_read_a_vector_whatever_its_size():
    kinds = KindClassifiers(
        np.array([10.0, 0.0, -1.0], np.float32), np.array([0.0, 5.0, 1.0], np.float32), NEVER_FAR
    )
    assert kinds.asks_state(np.array([1.0, 0.0], np.float32)) > 0.99
    assert kinds.asks_state(np.array([0.0, 1.0], np.float32)) < 0.5
    assert kinds.has_answer(np.array([0.0, 0.2], np.float32)) == 2.0
    assert kinds.has_answer(np.array([0.0, 1e9], np.float32)) == MOST


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 200))
def test_what_is_nearer_is_about_a_question_rather(nearer, farther, slope):
    least = 0.25
    nearer, farther = max(nearer, farther), min(nearer, farther)
    assert 0.0 <= about(farther, least, slope) <= about(nearer, least, slope) <= 1.0
    assert nearer < least or about(nearer, least, slope) == 1.0
