"""Importance: four parts in [0, 1], defined for every graph."""

from __future__ import annotations

from datetime import timedelta
from math import log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.graph.importance import ImportanceParts, ImportanceWeights, rank, recency
from agentd.memory.graph.traversal import Traversal, best_paths
from agentd.zero.hashes import concept_hash
from tests.graph.lines import NOW, LineGraph, edge

A = concept_hash("a")


def graph_of(*rows):
    graph = LineGraph()
    for subject, target, options in rows:
        graph.put(edge(subject, "to", target, **options), subject, target)
    return graph


async def ranked(graph, **options):
    found = rank(await graph.walk(best_paths([A])), NOW, **options)
    return {graph.label(one.concept): one for one in found}


def test_recency_halves_in_seven_days_and_the_future_is_new():
    assert recency(NOW, NOW) == 1.0
    assert recency(NOW - timedelta(days=7), NOW) == pytest.approx(0.5)
    assert recency(NOW + timedelta(days=7), NOW) == 1.0
    assert recency(NOW - timedelta(days=365_000), NOW) == 0.0


async def test_the_parts_are_what_they_say():
    found = await ranked(
        graph_of(
            ("a", "b", {"confidence": 0.8, "episodes": 3, "days": 14}),
            ("b", "c", {"confidence": 0.5, "episodes": 1, "days": 7}),
        )
    )
    assert found["b"].parts == ImportanceParts(0.8, 0.5, 1.0, 1.0)
    assert found["c"].parts == ImportanceParts(
        pytest.approx(0.4),
        0.5,
        pytest.approx(log1p(1) / log1p(4)),
        pytest.approx(log1p(1) / log1p(2)),
    )
    assert found["b"].score == pytest.approx(0.35 * 0.8 + 0.25 * 0.5 + 0.4)
    assert found["c"].depth == 2
    assert [e.confidence for e in found["b"].facts] == [0.8, 0.5]


async def test_the_highest_score_comes_first_and_not_the_surest_path():
    graph = graph_of(
        ("a", "old", {"confidence": 0.9, "days": 700}),
        ("a", "new", {"confidence": 0.8, "episodes": 9}),
    )
    assert list(await ranked(graph)) == ["new", "old"]
    only = ImportanceWeights(confidence=1.0, recency=0.0, frequency=0.0, connectivity=0.0)
    assert list(await ranked(graph, weights=only)) == ["old", "new"]


def test_an_empty_walk_has_no_ranks():
    assert rank(Traversal((A,)), NOW) == ()


async def test_facts_without_an_episode_divide_nothing_by_nothing():
    found = await ranked(graph_of(("a", "b", {"episodes": 0})))
    assert found["b"].parts.frequency == 0.0


@pytest.mark.parametrize("parts", [(0.5, 0.5, 0.5, -0.5), (0.35, 0.25, 0.2, 0.3)])
def test_weights_that_do_not_share_one_whole_are_refused(parts):
    with pytest.raises(ValueError, match="weights of importance"):
        ImportanceWeights(*parts)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.sampled_from("abcd"),
            st.fixed_dictionaries({
                "confidence": st.floats(0.1, 1), "episodes": st.integers(0, 10**6), "days": st.floats(-9, 9e4),
            }),
        ),
        max_size=8, unique_by=lambda row: row[:2],
    )
)  # fmt: skip
async def test_scores_and_parts_lie_between_nothing_and_one(rows):
    for one in (await ranked(graph_of(*rows))).values():
        parts = (
            one.parts.confidence,
            one.parts.recency,
            one.parts.frequency,
            one.parts.connectivity,
        )
        assert all(0.0 <= part <= 1.0 for part in parts)
        assert 0.0 <= one.score <= 1.0 + 1e-12
