"""What is old counts a little less."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking import fusion


def factor(age, half_life=30.0, floor=0.0):
    return fusion.age_factors(np.array([age], np.float32), half_life, floor)[0]


def test_a_half_life_halves():
    assert factor(30) == pytest.approx(0.5)
    assert factor(60) == pytest.approx(0.25)
    assert factor(30, floor=0.9) == pytest.approx(0.95)


def test_the_future_counts_as_today_and_evergreens_do_not_age():
    assert factor(-400) == 1.0
    assert factor(math.nan) == 1.0


@pytest.mark.parametrize("half_life", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_a_half_life_that_is_none_means_no_decay(half_life):
    assert factor(1000, half_life) == 1.0


@given(
    st.lists(st.floats(-1e5, 1e5, width=32), min_size=2, max_size=20),
    st.floats(0.01, 1e4),
    st.floats(-1.0, 2.0),
)
def test_factors_fall_with_age_and_stay_above_the_floor(ages, half_life, floor):
    factors = fusion.age_factors(np.array(sorted(ages), np.float32), half_life, floor)
    assert (np.diff(factors) <= 1e-6).all()
    assert (factors <= 1.0 + 1e-6).all()
    assert (factors >= min(1.0, max(0.0, floor)) - 1e-6).all()
