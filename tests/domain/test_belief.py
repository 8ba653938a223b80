"""What sayings come to together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.evidence import belief, faded_confidence

WEEK = 7 * 86_400
SURE = st.lists(st.floats(0, 1), max_size=8)


@given(SURE, SURE)
def test_beliefs_lie_between_0_and_1_in_any_order_and_denials_lower_them(support, denial):
    assert 0.0 <= belief(support, denial) <= 1.0
    assert belief(support, denial) <= belief(support)
    assert belief(support) == belief(support[::-1])
    assert belief(support) >= max(support, default=0.0) - 1e-12


def test_independent_sayings_add_up_and_a_denial_takes_away():
    assert belief([0.6, 0.6]) == pytest.approx(0.84)
    assert belief([0.5, 0.8], [0.4]) == pytest.approx(0.9 * 0.6)
    assert belief([], [0.5]) == belief([]) == 0.0


@pytest.mark.parametrize(
    ("age", "left"), [(-WEEK, 0.8), (0, 0.8), (WEEK, 0.4), (2 * WEEK, 0.2), (7 * WEEK, 0.0)]
)
def test_half_is_left_after_a_week_and_nothing_below_a_hundredth(age, left):
    assert faded_confidence(0.8, age) == pytest.approx(left)
