"""How near days are to those that were asked for."""

import numpy as np

from agentd.memory.index.ranking import newest as nearness


def test_the_nearer_a_day_the_better_it_fits():
    days = np.array([100, 103, 110, 98, 90, -1], np.int32)
    fits = nearness.fits(days, days, (99, 101)).tolist()
    assert fits[0] == 1.0
    assert 1.0 > fits[1] > fits[2] > 0.0
    assert fits[1] > fits[3] > fits[4]
    assert fits[5] == 0.0
