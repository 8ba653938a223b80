"""Hits within a budget."""

from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking.packing import LONGEST_JOIN, PackedUnit, join, within

costs = st.lists(st.integers(0, 300), max_size=30)


@given(costs, st.one_of(st.none(), st.integers(0, 1000)), st.integers(0, 30))
def test_the_budget_and_the_limit_are_never_exceeded(given_costs, budget, limit):
    chosen = within(given_costs, budget, limit)
    assert len(chosen) <= limit
    assert chosen == sorted(set(chosen))
    assert budget is None or sum(given_costs[at] for at in chosen) <= budget


def test_a_hit_that_does_not_fit_is_passed_over():
    assert within([50, 500, 40], 100, 10) == [0, 2]


def chain(count, tokens=10):
    """Units 0..count-1 of one file, each beside the next."""
    return [PackedUnit(n, tokens, n - 1, n + 1 if n + 1 < count else -1) for n in range(count)]


@given(st.permutations(range(12)), st.integers(0, 150), st.integers(1, 200))
def test_joined_hits_hold_every_unit_once_in_reading_order(order, budget, tokens):
    units = chain(12, tokens)
    groups = join([units[n] for n in order], budget)
    assert sorted(slot for group in groups for slot in group) == list(range(12))
    assert all(list(group) == list(range(group[0], group[-1] + 1)) for group in groups)
    assert all(len(group) * tokens <= max(LONGEST_JOIN, tokens) for group in groups)
    assert order[0] in groups[0]


def test_neighbours_join_at_the_rank_of_the_better_one():
    units = chain(6)
    assert join([units[n] for n in (4, 0, 5, 2)], 100) == [(4, 5), (0,), (2,)]


def test_units_past_the_budget_are_not_joined():
    units = chain(6)
    assert join([units[n] for n in (4, 0, 5, 2)], 20) == [(4,), (0,), (5,), (2,)]
    assert join([units[n] for n in (4, 5)], 0) == [(4,), (5,)]
