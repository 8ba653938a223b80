"""Walks: the surest path, bounded work, one question to the store per round."""

from __future__ import annotations

import random
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.graph import traversal as walks
from agentd.memory.graph.paths import PathLimits
from agentd.memory.graph.traversal import along
from agentd.zero.hashes import concept_hash
from tests.graph.lines import LineGraph, edge

A, B = concept_hash("a"), concept_hash("b")


async def best_paths(graph, seeds, *limits, **more):
    return await graph.walk(walks.best_paths(seeds, *limits, **more))


async def fewest_hops(graph, seeds, *limits, **more):
    return await graph.walk(walks.fewest_hops(seeds, *limits, **more))


def shown(graph, traversal):
    """Each concept with the labels on its way, confidence and directions."""
    return {
        graph.label(path.end): (
            "".join(graph.label(step.target) for step in path.steps),
            round(path.confidence, 4),
            [step.direction for step in path.steps],
        )
        for path in traversal.reached
    }


async def test_the_surest_path_wins_over_the_shortest():
    graph = LineGraph("a to b 0.3\n a to c 0.9\n c to b 0.9")
    assert shown(graph, await best_paths(graph, [A]))["b"] == ("cb", 0.81, ["out", "out"])
    assert shown(graph, await fewest_hops(graph, [A]))["b"] == ("b", 0.3, ["out"])


async def test_of_the_shortest_paths_the_surest_is_taken():
    graph = LineGraph("a to b 0.3\n a via c 0.9\n a likes b 0.5\n c to d .9\n b to d 0.9")
    found = shown(graph, await fewest_hops(graph, [A]))
    assert found["b"][1] == 0.5
    assert found["d"] == ("cd", 0.81, ["out", "out"])


async def test_what_is_nearer_comes_first_where_hops_count_and_is_not_cut_off():
    graph = LineGraph("a to b 0.3\n a to c 1\n c to d 1\n c to e 1")
    found = await fewest_hops(graph, [A], PathLimits(results=2))
    assert [graph.label(path.end) for path in found.reached] == ["c", "b"]
    assert [path.depth for path in found.arrivals] == [1, 1, 2, 2]
    surest = await best_paths(graph, [A], PathLimits(results=3))
    assert "b" not in shown(graph, surest)


async def test_facts_are_walked_both_ways_and_the_way_is_told():
    graph = LineGraph("b needs a\n b uses c")
    assert shown(graph, await best_paths(graph, [A]))["c"] == ("bc", 0.81, ["in", "out"])


async def test_a_sure_detour_does_not_hide_what_only_a_short_path_reaches():
    # By way of c, d and b it is surer to b, but then nothing is left of the depth for e.
    graph = LineGraph("a to b 0.5\n a to c 1\n c to d 1\n d to b 1\n b to e 1\n e to f 1")
    found = shown(graph, await best_paths(graph, [A], PathLimits(depth=3)))
    assert found["b"] == ("cdb", 1.0, ["out"] * 3)
    assert found["e"] == ("be", 0.5, ["out"] * 2)
    assert found["f"] == ("bef", 0.5, ["out"] * 3)


async def test_what_is_too_far_or_too_unsure_is_not_reached():
    graph = LineGraph(
        "a to b 1\n b to c 1\n c to d 1\n d to e 1\n e to h 1\n a to f 0.0999\n a to g 0.1"
    )
    assert shown(graph, await best_paths(graph, [A])).keys() == {"b", "c", "d", "e", "g"}
    assert not (await best_paths(graph, [A], PathLimits(depth=0))).reached


async def test_no_way_leads_through_the_hub_but_some_begin_and_end_there():
    graph = LineGraph("a to hub 1\n hub to b 1\n hub likes c 1\n a to d 1")
    hub = concept_hash("hub")
    found = await best_paths(graph, [A], hub=hub)
    assert shown(graph, found).keys() == {"hub", "d"}
    found = await best_paths(graph, [hub], hub=hub, preferred=["likes"])
    assert shown(graph, found).keys() == {"c"}


async def test_where_it_begins_is_not_reached_but_what_it_says_of_itself_is_seen():
    graph = LineGraph("a knows a 0.8\n a to b\n b to a 0.7")
    traversal = await best_paths(graph, [A])
    assert shown(graph, traversal).keys() == {"b"}
    assert [p.end for p in traversal.arrivals if p.steps[-1].is_loop] == [A]
    assert len(traversal.edges) == 3


async def test_from_several_beginnings_the_nearer_one_counts():
    graph = LineGraph("a to c 0.5\n b to c 0.9\n b to a 1")
    traversal = await best_paths(graph, [B, A, B])
    assert traversal.seeds == tuple(sorted((A, B)))
    assert [(p.start, p.confidence) for p in traversal.reached] == [(B, 0.9)]


async def test_an_unknown_beginning_reaches_nothing():
    traversal = await best_paths(LineGraph("a to b"), [concept_hash("nowhere")])
    assert traversal.reached == traversal.arrivals == ()


async def test_the_store_is_asked_once_per_round():
    lines = [f"a to b{i}" for i in range(30)] + [
        f"b{i} to c{j}" for i in range(30) for j in range(3)
    ]
    graph = LineGraph("\n".join(lines))
    await best_paths(graph, [A])
    assert graph.asked == [("edges", 1), ("edges", 30), ("edges", 3)]


async def test_results_are_cut_after_the_search():
    graph = LineGraph("\n".join(f"a to b{i} {0.2 + i / 100}" for i in range(60)))
    reached = (await best_paths(graph, [A], PathLimits(results=5))).reached
    assert [graph.label(path.end) for path in reached] == ["b59", "b58", "b57", "b56", "b55"]


async def test_a_hub_is_walked_along_its_surest_facts():
    graph = LineGraph("\n".join(f"a to b{i} {0.2 + i / 1000}" for i in range(500)))
    traversal = await best_paths(graph, [A])
    assert len(traversal.edges) == 64
    assert min(edge.confidence for edge in traversal.edges) == 0.2 + 436 / 1000


async def test_facts_that_a_question_is_about_are_not_hidden_by_a_hubs_others():
    rows = [f"a to b{i} 0.9" for i in range(500)]
    graph = LineGraph("\n".join([*rows, "a needs water 0.2"]))
    assert "water" not in shown(graph, await best_paths(graph, [A]))
    traversal = await best_paths(graph, [A], preferred=["needs"])
    assert "needs" in {edge.predicate for edge in traversal.edges}


async def test_one_round_goes_on_from_the_surest_concepts_only():
    rows = [f"a to b{i} {1 - i / 10}\n b{i} to c{i} 1" for i in range(5)]
    graph = LineGraph("\n".join(rows))
    found = shown(graph, await best_paths(graph, [A], PathLimits(breadth=2)))
    assert found.keys() == {"b0", "b1", "b2", "b3", "b4", "c0", "c1"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 5}, {"depth": -1}, {"results": 51}, {"least": 1.1}, {"fanout": 0}, {"breadth": 0},
        {"least": float("nan")},
    ],
)  # fmt: skip
def test_limits_without_a_meaning_are_refused(wrong):
    with pytest.raises(ValueError, match=r"a walk|a confidence"):
        PathLimits(**wrong)


def test_a_walk_along_given_facts_goes_both_ways_and_a_loop_once():
    rows = [edge("a", "is", "b", 0.5), edge("a", "is", "a"), edge("a", "is", "c", 0.05)]
    traversal = along(rows)
    assert [(p.start, p.end) for p in traversal.arrivals if p.confidence == 0.5] == sorted(
        [(A, B), (B, A)], key=lambda pair: pair[1]
    )
    assert len(traversal.arrivals) == 3


EDGES = st.lists(
    st.tuples(
        st.sampled_from("abcdef"), st.sampled_from("xy"), st.sampled_from("abcdef"),
        st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.9, 1.0]),
    ),
    max_size=12, unique_by=lambda row: row[:3],
)  # fmt: skip


def every_path(rows, depth):
    """All paths without a repeated concept, by trying."""
    paths = [("a", [])]
    for _ in range(depth):
        for at, way in [p for p in paths if len(p[1]) == max(len(w) for _, w in paths)]:
            for subject, _, target, confidence in rows:
                for here, there in {(subject, target), (target, subject)}:
                    visited = {"a", *(step[0] for step in way)}
                    if here == at and there not in visited and confidence >= 0.1:
                        paths.append((there, [*way, (there, confidence)]))
    return paths


@given(EDGES, st.integers(1, 3))
async def test_no_path_is_surer_than_the_one_that_is_found(rows, depth):
    graph = LineGraph("\n".join(" ".join(map(str, row)) for row in rows))
    traversal = await best_paths(graph, [A], PathLimits(depth=depth))
    best = {}
    for end, way in every_path(rows, depth):
        if way:
            best[end] = max(best.get(end, 0.0), prod(c for _, c in way))
    found = {graph.label(path.end): path.confidence for path in traversal.reached}
    assert found == pytest.approx(best)
    hops = await fewest_hops(graph, [A], PathLimits(depth=depth))
    nearest = {}
    for end, way in every_path(rows, depth):
        if way:
            nearest[end] = min(nearest.get(end, 9), len(way))
    assert {graph.label(path.end): path.depth for path in hops.reached} == nearest


@given(EDGES, st.randoms(use_true_random=False))
async def test_the_order_in_which_the_store_answers_changes_nothing(rows, chance: random.Random):
    class Shuffled(LineGraph):
        async def edges(self, concepts, **wanted):
            found = list(await super().edges(concepts, **wanted))
            chance.shuffle(found)
            return found

    lines = "\n".join(" ".join(map(str, row)) for row in rows)
    for walk in (best_paths, fewest_hops):
        assert await walk(Shuffled(lines), [A]) == await walk(LineGraph(lines), [A])


@given(EDGES)
async def test_every_fact_that_is_sure_enough_and_near_is_seen_once(rows):
    graph = LineGraph("\n".join(" ".join(map(str, row)) for row in rows))
    traversal = await best_paths(graph, [A], PathLimits(depth=3))
    near = {A} | {p.end for p in (await best_paths(graph, [A], PathLimits(depth=2))).reached}
    expected = {e for e in graph.rows if e.confidence >= 0.1 and {e.subject, e.object} & near}
    assert set(traversal.edges) == expected
    assert len(traversal.edges) == len(expected)
    for path in traversal.arrivals:
        facts = [step.edge.fact for step in path.steps]
        assert len(set(facts)) == len(facts)
