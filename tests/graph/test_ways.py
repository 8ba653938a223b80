"""Questions BY a way: what is found, what comes first, and what the score says."""

from __future__ import annotations

import pytest

from agentd.core.errors import QueryError
from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.recall import Recollection
from agentd.testing import FakeClock
from tests.graph.lines import NOW, LineGraph

# Near and unsure: tea. Far and sure: cup, by way of shop. Sugar is near, too, and surer over the
# shop.
LINES = """
    ann likes tea 0.2
    ann runs shop 1
    shop sells cup 1
    cup holds tea 0.9
    ann takes sugar 0.3
    shop sells sugar 0.9
    ann knows ann 0.9
"""


@pytest.fixture
def graph():
    return LineGraph(LINES)


@pytest.fixture
def memory(graph):
    return Recollection(graph, FakeClock(NOW))


def ways(answer):
    return [row.way for row in answer.rows]


def scores(answer):
    return {row.label: row.score for row in answer.rows}


async def test_by_paths_is_what_a_question_means_that_says_no_way(memory):
    for kind in ("concept", "fact", "path"):
        question = f"FIND {kind} FROM ann DEPTH 3 LIMIT 50"
        assert await memory.answer(f"{question} BY paths") == await memory.answer(question)
    for by in TraversalMode:
        assert (await memory.answer(f"FIND fact FROM ann BY {by}")).by is by
    question = "FIND fact WHERE predicate = sells"
    assert await memory.answer(f"{question} BY paths") == await memory.answer(question)


async def test_by_breadth_concepts_are_reached_by_the_fewest_facts_and_the_nearest_come_first(
    memory,
):
    surest = await memory.answer("FIND concept WHERE label = sugar FROM ann BY paths")
    assert ways(surest) == ["ann -runs-> shop -sells-> sugar"]
    answer = await memory.answer("FIND concept FROM ann BY breadth DEPTH 3")
    assert {row.label: row.way for row in answer.rows} == {
        "shop": "ann -runs-> shop",
        "sugar": "ann -takes-> sugar",
        "tea": "ann -likes-> tea",
        "cup": "ann -runs-> shop -sells-> cup",
    }
    assert [row.depth for row in answer.rows] == [1, 1, 1, 2]
    near = [row.score for row in answer.rows[:3]]
    assert near == sorted(near, reverse=True)
    cut = await memory.answer("FIND concept FROM ann BY breadth DEPTH 3 LIMIT 3")
    assert "cup" not in scores(cut)


async def test_by_breadth_the_score_is_the_importance_along_the_shortest_path(memory):
    by_paths = await memory.answer("FIND concept WHERE depth = 1 FROM ann BY paths")
    by_breadth = await memory.answer("FIND concept WHERE depth = 1 FROM ann BY breadth")
    assert scores(by_breadth) == scores(by_paths)
    [row] = (await memory.answer("FIND concept WHERE label = sugar FROM ann BY breadth")).rows
    assert row.confidence == 0.3


async def test_by_breadth_facts_and_paths_come_the_nearest_first(memory):
    facts = await memory.answer("FIND fact FROM ann BY breadth DEPTH 3 LIMIT 50")
    assert [row.depth for row in facts.rows] == [1, 1, 1, 1, 2, 2, 2]
    assert len({str(row.fact) for row in facts.rows}) == 7
    paths = await memory.answer("FIND path WHERE label = tea FROM ann BY breadth DEPTH 3")
    assert ways(paths)[0] == "ann -likes-> tea"
    assert [row.depth for row in paths.rows] == [1, 3]


async def test_what_holds_of_no_shortest_path_is_found_by_the_next(memory):
    question = "FIND concept WHERE label = sugar AND predicate = sells FROM ann BY breadth"
    assert ways(await memory.answer(question)) == ["ann -runs-> shop -sells-> sugar"]


async def test_by_activation_the_score_of_a_concept_is_all_that_came_to_it(memory):
    answer = await memory.answer("FIND concept FROM ann BY activation DEPTH 2")
    sugar = 0.3 / 2 + 0.5 * 0.9 / 2
    assert scores(answer)["shop"] == pytest.approx(0.5 + 0.15 * 0.9 / 2)
    assert scores(answer)["sugar"] == pytest.approx(sugar)
    assert [row.score for row in answer.rows] == sorted(scores(answer).values(), reverse=True)
    assert {row.label: row.way for row in answer.rows}["sugar"] == "ann -runs-> shop -sells-> sugar"
    assert "ann" not in scores(answer)


async def test_by_activation_the_score_of_a_fact_is_what_it_passed_on(memory):
    answer = await memory.answer("FIND fact FROM ann BY activation DEPTH 1")
    assert [(str(row.fact), row.score) for row in answer.rows] == [
        ("ann runs shop", 0.5),
        ("ann takes sugar", pytest.approx(0.15)),
        ("ann likes tea", pytest.approx(0.1)),
    ]
    assert [row.confidence for row in answer.rows] == [1, 0.3, 0.2]


async def test_by_activation_it_spreads_four_rounds_unless_the_depth_says_less():
    memory = Recollection(LineGraph("a to b 1\n b to c 1\n c to d 1\n d to e 1"), FakeClock(NOW))
    assert scores(await memory.answer("FIND concept FROM a BY activation")) == {
        "b": 0.5, "c": 0.25, "d": 0.125, "e": 0.0625,
    }  # fmt: skip
    assert scores(await memory.answer("FIND concept FROM a BY activation DEPTH 1")) == {"b": 0.5}


async def test_conditions_choose_among_what_was_activated_and_change_no_score(memory):
    every = scores(await memory.answer("FIND concept FROM ann BY activation"))
    for where in ("predicate = sells", "score > 0.3", "depth = 1", "direction = in", "start = ann"):
        some = scores(await memory.answer(f"FIND concept WHERE {where} FROM ann BY activation"))
        assert some
        assert some.items() <= every.items()


async def test_what_several_names_activate_comes_first():
    graph = LineGraph("a to x 0.6\n a to y 0.5\n b to y 0.5\n b to z 0.6")
    answer = await Recollection(graph, FakeClock(NOW)).answer(
        "FIND concept FROM a, b BY activation"
    )
    assert answer.rows[0].label == "y"
    assert answer.rows[0].score == pytest.approx(0.5)


@pytest.mark.parametrize("by", ["paths", "breadth", "activation"])
async def test_other_audiences_facts_are_walked_by_no_way(by):
    graph = LineGraph("a to b 1 @main\n b to c 1 @group\n a to d 0.5 @group\n hidden is e 1 @main")
    memory = Recollection(graph, FakeClock(NOW))
    answer = await memory.answer(f"FIND concept FROM a BY {by}", scopes=["group"])
    assert scores(answer).keys() == {"d"}
    unknown = await memory.answer(f"FIND fact FROM hidden, hiden BY {by}", scopes=["group"])
    assert unknown.reason == "nothing is known about 'hiden'; nothing is known about 'hidden'"


@pytest.mark.parametrize("by", ["breadth", "activation"])
async def test_what_finds_nothing_says_why(by):
    memory = Recollection(LineGraph("a to b 0.05\n c knows c 0.9"), FakeClock(NOW))
    weak = await memory.answer(f"FIND concept FROM a BY {by}")
    assert weak.reason == "1 fact is known, but none as sure as 0.1: the surest has 0.05"
    alone = await memory.answer(f"FIND concept FROM c BY {by}")
    assert alone.reason == "1 fact was looked at, and no concept among them fits the question"


async def test_what_has_no_meaning_is_refused_with_its_place(memory):
    for question, column in (
        ("FIND path FROM ann BY activation", 23),
        ("FIND fact BY breadth WHERE predicate = sells", 14),
    ):
        with pytest.raises(QueryError) as caught:
            await memory.answer(question)
        assert caught.value.column == column


async def test_each_way_asks_the_store_once_per_round(memory, graph):
    for by, rounds in (("breadth", 2), ("activation", 4)):
        graph.asked.clear()
        await memory.answer(f"FIND concept FROM ann BY {by}")
        assert [kind for kind, _ in graph.asked].count("edges") <= rounds
