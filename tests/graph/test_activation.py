"""Spreading activation: the sum of what facts carry, without echo and with an end."""

from __future__ import annotations

import pytest

from agentd.memory.graph.paths import LIMITS, PathLimits
from agentd.memory.graph.spreading import THRESHOLD, spread
from agentd.zero.hashes import concept_hash
from tests.graph.lines import LineGraph

A, B = concept_hash("a"), concept_hash("b")


async def activation(graph, seeds=(A,), limits=LIMITS, **options):
    found = await graph.walk(spread(seeds, limits, **options))
    return {graph.label(one): value for one, value in found.levels.items()}


def ways(graph, paths):
    return ["".join(map(graph.label, (p.start, *(s.target for s in p.steps)))) for p in paths]


async def test_activation_halves_and_is_multiplied_with_confidence():
    found = await activation(LineGraph("a to b 0.8\n c to b 0.5"))
    assert found == pytest.approx({"a": 1.0, "b": 0.4, "c": 0.1})


async def test_what_several_facts_carry_adds_up():
    graph = LineGraph("a to c 0.5\n b to c 0.5\n a likes c 0.4")
    assert (await activation(graph, (A, B)))["c"] == pytest.approx(0.7)


async def test_nothing_comes_back_along_a_fact_and_nothing_exceeds_one():
    lone = await activation(LineGraph("a to b 1"))
    assert lone == {"a": 1.0, "b": 0.5}
    many = LineGraph("\n".join(f"a to m{i} 1\n m{i} to c 1" for i in range(9)))
    assert (await activation(many))["c"] == 1.0


async def test_below_the_threshold_nothing_is_passed_on_or_shown():
    graph = LineGraph("a to b 0.1\n b to c 1")
    assert await activation(graph) == pytest.approx(
        {
            "a": 1.0,
            "b": THRESHOLD,
        }
    )
    weak = LineGraph("a to b 0.19\n b to c 1\n c to d 1")
    assert (await activation(weak)).keys() == {"a", "b"}


async def test_it_ends_after_four_rounds_with_one_question_each():
    graph = LineGraph("a to b 1\n b to c 1\n c to d 1\n d to e 1\n e to f 1")
    found = await activation(graph)
    assert found == pytest.approx({"a": 1, "b": 0.5, "c": 0.25, "d": 0.125, "e": 0.0625})
    assert graph.asked == [("edges", 1)] * 4


async def test_it_spreads_for_fewer_rounds_where_so_many_are_enough():
    graph = LineGraph("a to b 1\n b to c 1")
    assert await activation(graph, rounds=1) == {"a": 1, "b": 0.5}
    assert graph.asked == [("edges", 1)]


async def test_results_are_bounded_without_the_beginnings():
    graph = LineGraph("\n".join(f"a to b{i} 0.{i + 1}" for i in range(9)))
    reached = (await graph.walk(spread([A], PathLimits(results=2)))).traversal.reached
    assert [graph.label(path.end) for path in reached] == ["b8", "b7"]


async def test_a_concept_is_told_by_the_way_that_most_of_it_came():
    graph = LineGraph("a to b 0.3\n a to c 1\n c to b 1\n a knows a 1")
    found = await graph.walk(spread([A]))
    assert found.levels[B] == pytest.approx(0.15 + 0.25)
    assert ways(graph, found.traversal.reached) == ["ac", "acb"]
    assert [found.score(path) for path in found.traversal.reached] == pytest.approx(
        [0.5 + 0.075, 0.4]  # b had 0.15 and passed it on to c while c passed on to b
    )
    assert found.traversal.seeds == (A,)


async def test_facts_are_told_by_what_they_passed_on_each_way_and_no_way_turns_back():
    graph = LineGraph("a to b 0.8\n b to c 0.5\n c to d 0.05")
    found = await graph.walk(spread([A, B]))
    arrivals = found.traversal.arrivals
    assert {*ways(graph, arrivals)[:2]} == {"ab", "ba"}
    assert ways(graph, arrivals)[2:] == ["bc"]
    assert [found.fact(path) for path in arrivals] == pytest.approx([0.4, 0.4, 0.25])


async def test_facts_are_seen_that_pass_nothing_on():
    found = await LineGraph("a knows a 0.9").walk(spread([A]))
    assert (found.traversal.arrivals, len(found.traversal.edges)) == ((), 1)
