"""How much the vector leg may say about the order."""

import numpy as np

from agentd.ranking.opinions import heard

COUNT = 40


def order(agreed, *, settled=False):
    """The order of candidates of which the last are nearest in meaning and one has cover."""
    meaning = np.linspace(0.0, 1.0, COUNT, dtype=np.float32)
    cover = np.full(COUNT, agreed, np.float32)
    return heard(meaning, cover, np.zeros(COUNT, np.float32), settled=settled)


def test_words_that_tell_nothing_leave_most_ranks_to_meaning():
    first = order(0.05)[:20]
    assert first[0] == 0
    assert sum(at >= COUNT // 2 for at in first) >= 15


def test_words_that_tell_little_take_turns_with_meaning():
    first = order(0.3)[:20]
    assert 9 <= sum(at >= COUNT // 2 for at in first) <= 11


def test_words_that_agree_with_meaning_give_it_one_rank():
    assert order(0.9)[:4] == [0, COUNT - 1, 1, 2]


def test_a_settled_order_stays():
    assert order(0.05, settled=True) == list(range(COUNT))


def test_every_candidate_stays_once_whatever_is_heard():
    for agreed in (0.0, 0.05, 0.3, 0.5, 0.9):
        assert sorted(order(agreed)) == list(range(COUNT))
