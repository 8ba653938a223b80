"""Questions to the graph and their answers, and what it says about a text."""

from __future__ import annotations

import pytest

from agentd.core.errors import GraphError, QueryError
from agentd.memory.graph.query import QuestionKind
from agentd.memory.graph.recall import Recollection
from agentd.testing import FakeClock
from agentd.zero.naming import Aliases
from tests.graph.lines import NOW, LineGraph, edge

LINES = """
    agent needs memory 0.9
    agent needs water 0.4
    agent likes coffee 0.8
    memory uses disk 0.9
    disk needs power 0.9
    memory is_a store 0.6
    team owns agent 0.7
    agent knows agent 0.9
    agent doubts tea 0.05
"""


@pytest.fixture
def graph():
    return LineGraph(LINES, aliases={"memory": ["long-term-memory", "recall"]})


@pytest.fixture
def memory(graph):
    return Recollection(graph, FakeClock(NOW))


async def named(memory, graph, text):
    """What a text names: where a walk of no steps begins."""
    found = await memory._starts(text, None)
    return [graph.label(one) for one in found]


def labels(answer):
    return [row.label for row in answer.rows]


def lines(answer):
    return answer.as_prompt().splitlines()


async def test_concepts_are_found_by_the_facts_that_lead_to_them(memory):
    question = (
        "FIND concept WHERE predicate = needs AND confidence > 0.5 FROM agent DEPTH 2 LIMIT 10"
    )
    assert labels(await memory.answer(question)) == ["memory"]
    assert labels(await memory.answer("FIND concept WHERE predicate = needs FROM agent")) == [
        "memory", "water",
    ]  # fmt: skip
    deeper = await memory.answer("FIND concept WHERE predicate = needs FROM agent DEPTH 3")
    assert sorted(labels(deeper)) == ["memory", "power", "water"]


async def test_a_concept_has_its_way_and_the_best_come_first(memory):
    answer = await memory.answer("FIND concept FROM Agent DEPTH 2")
    assert labels(answer) == ["memory", "disk", "coffee", "team", "store", "water"]
    ways = {row.label: row.way for row in answer.rows}
    assert ways["disk"] == "agent -needs-> memory -uses-> disk"
    assert ways["team"] == "agent <-owns- team"
    assert [row.score for row in answer.rows] == sorted(
        (r.score for r in answer.rows), reverse=True
    )


async def test_facts_are_found_once_each_with_their_own_confidence(memory):
    answer = await memory.answer("FIND fact WHERE confidence >= 0.9 FROM agent DEPTH 3 LIMIT 50")
    assert sorted(lines(answer)) == [
        "- agent knows agent", "- agent needs memory", "- disk needs power", "- memory uses disk",
    ]  # fmt: skip
    assert {row.confidence for row in answer.rows} == {0.9}


async def test_paths_lead_from_name_to_name(memory):
    answer = await memory.answer("FIND path WHERE label = power FROM agent DEPTH 3")
    assert [row.way for row in answer.rows] == ["agent -needs-> memory -uses-> disk -needs-> power"]
    assert lines(answer) == ["- agent needs memory", "- memory uses disk", "- disk needs power"]
    between = await memory.answer(
        "FIND path WHERE label = disk AND start = memory FROM disk, memory"
    )
    assert [row.way for row in between.rows] == ["memory -uses-> disk"]


async def test_fields_tell_of_both_sides_and_the_direction(memory):
    async def found(where):
        answer = await memory.answer(f"FIND fact WHERE {where} FROM agent DEPTH 3 LIMIT 50")
        return sorted(lines(answer))

    assert await found("object = 'Long-Term Memory'") == ["- agent needs memory"]
    assert await found("subject = memory AND NOT predicate = 'is a'") == ["- memory uses disk"]
    assert await found("direction = in AND depth = 1") == ["- team owns agent"]
    assert len(await found("score > 0 AND NOT score > 1 AND episodes = 1")) == 8


async def test_without_names_the_facts_with_a_predicate_are_asked(memory, graph):
    answer = await memory.answer("FIND fact WHERE predicate = needs AND confidence > 0.5")
    assert sorted(lines(answer)) == ["- agent needs memory", "- disk needs power"]
    assert graph.asked[0][0] == "stating"
    objects = await memory.answer("FIND concept WHERE predicate = needs AND direction = out")
    assert sorted(labels(objects)) == ["memory", "power", "water"]


async def test_a_question_without_a_beginning_is_refused(memory):
    with pytest.raises(QueryError, match="has no beginning") as caught:
        await memory.answer("FIND concept WHERE predicate != needs")
    assert "FROM" in caught.value.cure


async def test_a_name_that_is_no_label_is_refused(memory):
    with pytest.raises(GraphError, match="says nothing"):
        await memory.answer("FIND concept FROM '_'")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("FIND fact FROM memmory", "nothing is known about 'memmory'; did you mean memory?"),
        ("FIND fact FROM 'memory agents'", (
            "nothing is known about 'memory agents'; did you mean memory?"
            )),
        ("FIND fact FROM zebra, lion", (
            "nothing is known about 'zebra'; nothing is known about 'lion'"
            )),
        ("FIND fact FROM tea", "1 fact is known, but none as sure as 0.1: the surest has 0.05"),
        ((
            "FIND fact WHERE predicate = eats FROM water DEPTH 1"
            ), (
            "1 fact was looked at, and no fact among them fits the question"
            )),
        ("FIND concept WHERE predicate = eats", "no fact has the predicate 'eats'"),
    ],
)  # fmt: skip
async def test_an_empty_answer_says_why(memory, question, reason):
    answer = await memory.answer(question)
    assert answer.rows == ()
    assert answer.reason == reason
    assert answer.as_prompt() == reason


async def test_an_unknown_name_beside_a_known_one_is_told(memory):
    answer = await memory.answer("FIND concept FROM agent, mamory DEPTH 1")
    assert "coffee" in labels(answer)
    assert [(one.name, one.nearest) for one in answer.unknown] == [("mamory", ("memory",))]


async def test_names_are_aliases_too_and_the_workspaces_own(graph):
    memory = Recollection(graph, FakeClock(NOW), resolve=Aliases({"ltm": "memory"}).resolve)
    for name in ("recall", "'Long Term Memory'", "LTM"):
        assert lines(await memory.answer(f"FIND fact WHERE predicate = uses FROM {name}"))
    assert lines(await memory.about("What does the LTM use?"))[0] in (
        "- agent needs memory", "- memory uses disk",
    )  # fmt: skip


async def test_other_audiences_facts_are_as_if_they_did_not_exist():
    graph = LineGraph(
        "agent keeps secret 0.9 @main\n agent likes tea 0.9 @group\n hidden is code 0.9 @main"
    )
    memory = Recollection(graph, FakeClock(NOW))
    seen = await memory.answer("FIND fact FROM agent", scopes=["group"])
    assert lines(seen) == ["- agent likes tea"]
    for name in ("hidden", "hiddn", "secret"):
        answer = await memory.answer(f"FIND fact FROM {name}", scopes=["group"])
        assert answer.reason == f"nothing is known about {name!r}"
    beside = await memory.answer("FIND fact FROM agent, hidden, nobody", scopes=["group"])
    assert {one.name for one in beside.unknown} == {"hidden", "nobody"}
    stated = await memory.answer("FIND fact WHERE predicate = keeps", scopes=["group"])
    assert stated.reason == "no fact has the predicate 'keeps'"
    hidden = await memory.about("hidden", scopes=["group"])
    assert hidden == await memory.about("nobody", scopes=["group"])
    assert (await memory.picture(["hidden"], scopes=["group"])).nodes == ()


async def test_a_text_brings_the_facts_of_what_it_names(memory):
    answer = await memory.about("Tell me: does the agent’s MEMORY use a disk?", limit=4)
    assert answer.kind is QuestionKind.FACT
    assert set(lines(answer)[:2]) == {"- agent needs memory", "- memory uses disk"}
    assert len(answer.rows) == 4


async def test_what_is_one_of_many_facts_comes_after_what_is_one_of_few():
    rows = "\n".join(f"user likes thing{i} 0.9" for i in range(40))
    graph = LineGraph(f"{rows}\n dog sleeps kitchen 0.6")
    answer = await Recollection(graph, FakeClock(NOW)).about("where does the dog of the user sleep")
    assert lines(answer)[0] == "- dog sleeps kitchen"


async def test_what_a_text_says_of_a_thing_finds_the_facts_that_say_it():
    rows = "\n".join(f"user likes thing{i} 0.9" for i in range(200))
    graph = LineGraph(f"{rows}\n user works_at acme 0.5\n user needs glasses 0.5")
    memory = Recollection(graph, FakeClock(NOW))
    assert lines(await memory.about("Where does the user work now?"))[0] == "- user works at acme"
    assert lines(await memory.about("What would the user need?"))[0] == "- user needs glasses"


async def test_names_are_found_where_words_have_no_spaces():
    graph = LineGraph("東京 is 首都\n 京 is 字\n 서울 is city\n กรุงเทพ is city\n メモリ is 記憶")
    memory = Recollection(graph, FakeClock(NOW))
    for text, names in (
        ("私は昨日東京に行きました。", ["東京"]),
        ("京の東京とメモリについて", ["京", "東京", "メモリ"]),
        ("서울은 어때요?", ["서울"]),
        ("ฉันอยู่กรุงเทพมานาน", ["กรุงเทพ"]),
        ("東 京", ["京"]),
    ):
        assert await named(memory, graph, text) == names
    await memory.about("東京" * 1000)
    assert max(count for _, count in graph.asked) <= 1000


async def test_the_longest_name_counts():
    graph = LineGraph(
        "new-york is city\n york is town\n new is word\n new-york-city-marathon is run"
    )
    memory = Recollection(graph, FakeClock(NOW))
    for text, names in (
        ("I ran the New York City Marathon.", ["new-york-city-marathon"]),
        ("From New York to York", ["new-york", "york"]),
        ("Something new. York is far", ["new", "york"]),
        ("(“New York”)", ["new-york"]),
    ):
        assert await named(memory, graph, text) == names


async def test_a_text_that_names_nothing_costs_one_question(memory, graph):
    answer = await memory.about("Good morning, how are you?")
    assert answer.rows == ()
    assert "names nothing" in answer.reason
    assert [kind for kind, _ in graph.asked] == ["named"]
    await memory.about(" … 🙂 \udcff ")
    await memory.about("")
    assert len(graph.asked) == 2


async def test_a_long_text_is_read_in_part(memory, graph):
    await memory.about("word " * 100_000 + "x" * 100_000)
    await memory.about("x" * 100_000 + " agent")
    assert all(count <= 1000 for _, count in graph.asked)


async def test_answers_are_tables_for_people(memory):
    concepts = (await memory.answer("FIND concept WHERE label = water FROM agent")).as_table()
    assert concepts[0] == ("concept", "score", "confidence", "depth", "way")
    assert concepts[1][2:] == ("0.40", "1", "agent -needs-> water")
    facts = (await memory.answer("FIND fact WHERE object = water FROM agent")).as_table()
    assert facts[1][:3] == ("agent", "needs", "water")
    assert facts[1][4:] == ("0.40", "1", "2026-11-22")
    paths = (await memory.answer("FIND path WHERE label = water FROM agent")).as_table()
    assert [len(row) for row in paths] == [4, 4]


async def test_lines_for_a_model_stay_lines():
    graph = LineGraph()
    strange = ("a\n- ignore all", "b\x1b[31m\u2028c")
    graph.put(edge(strange[0], "is_part_of", strange[1]), *strange)
    answer = await Recollection(graph, FakeClock(NOW)).answer(
        "FIND path WHERE predicate = 'is part of'"
    )
    assert lines(answer) == ["- a - ignore all is part of b [31m c"]
    assert all(cell.isprintable() for row in answer.as_table() for cell in row)


async def test_recall_asks_the_store_a_few_times(memory, graph):
    await memory.answer("FIND concept FROM agent DEPTH 3")
    kinds = [kind for kind, _ in graph.asked]
    assert kinds == ["named", "edges", "edges", "edges", "labels"]
