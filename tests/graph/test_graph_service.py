"""Questions and plain words to the graph, and what sessions may recall of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.errors import QueryError
from agentd.core.tool import ToolCall
from agentd.core.turn import MAIN, Origin, SessionKey, kind_of
from agentd.interfaces.tools.graph_recall import GraphRecall
from agentd.memory.graph.consolidation import rows
from agentd.memory.graph.paths import TraversalMode
from agentd.memory.graph.picture import FactHistory
from agentd.memory.graph.query import parse
from agentd.memory.graph.service import is_query, with_pointer
from agentd.memory.graph.wire import answer_json, answer_of, picture_json, picture_of
from agentd.zero.compiler import compile as compiled
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple
from tests.graph.home import ALIASES, Home, fact

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
GROUP = SessionKey("group:family")


FOREIGN = compiled(
    CompilerInput(
        (SemanticTuple("Klara", "owes", "Otto", 0.9),),
        ContextMeta(NOW - timedelta(days=7), "chat", GROUP),
    ),
).record


@pytest.fixture
async def home():
    home = Home({ALIASES: "chief = Otto\nboss = Otto"})
    home.start()
    await home.records.keep(rows(FOREIGN, "group", NOW))
    await home.learn(fact("f1", "sister name", "Klara"), fact("f2", "home", "Bern", "my sister"))
    return home


@pytest.fixture
def store(home):
    return home.store


@pytest.fixture
def service(home):
    return home.service


class NoGate:
    """Nothing is asked and nothing intended."""

    async def approve(self, approval):
        raise AssertionError(approval)

    async def intend(self, intent=None):
        raise AssertionError(intent)


async def recalled(service, query, session=MAIN):
    call = ToolCall("c", "graph_recall", {"query": query}, session, kind_of(session), Origin.USER)
    return await GraphRecall(service).run(call, NoGate())


def triples(answer):
    return sorted(str(triple) for triple in answer.triples)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("FIND concept FROM x", True),
        ("  FIND nonsense", True),
        ("find facts from x", True),
        ("find my keys", False),
        ("find", False),
        ("Where does Klara live?", False),
        ("", False),
    ],
)
def test_what_is_a_question_of_the_language(text, is_one):
    assert is_query(text) is is_one


async def test_a_question_and_plain_words_are_answered(service):
    answer = await service.ask("FIND concept WHERE predicate = home FROM user DEPTH 2")
    assert [row.label for row in answer.rows] == ["bern"]
    assert "klara home bern" in triples(await service.ask("Where does Klara live?"))
    assert len((await service.ask("Klara", limit=1)).rows) == 1
    assert (await service.ask("zeppelins")).reason


async def test_what_is_mine_is_what_the_owner_has(service):
    assert triples(await service.ask("what is my sister called?"))[-1] == "user sister name klara"
    assert not (await service.ask("what is my shoe size?")).rows


async def test_for_others_mine_is_not_what_the_owner_has(service):
    assert not (await service.ask("what is my sister called?", scopes=(GROUP,))).rows


async def test_a_mistake_is_shown_below_the_question(service):
    with pytest.raises(QueryError) as caught:
        await service.ask("FIND concept\nWHERE 東京 = tea = 3")
    message = caught.value.message.splitlines()
    assert message[0].startswith("line 2, column ")
    assert message[1] == "  WHERE 東京 = tea = 3"
    assert message[2].strip() == "^"


async def test_what_a_question_lacks_is_shown_at_its_end(service):
    with pytest.raises(QueryError) as caught:
        await service.ask("FIND concept\nWHERE confidence > 0.5 \n ")
    message = caught.value.message.splitlines()
    assert message[0] == "line 2, column 23: the question has no beginning"
    assert message[1].rstrip() == "  WHERE confidence > 0.5"
    assert message[2] == " " * 24 + "^"


@pytest.mark.parametrize(
    "question", ["FIND", "FIND concept FROM x LIMIT 0", f"FIND fact {'x ' * 300}"]
)
def test_the_mark_stands_below_the_place_of_the_mistake(question):
    with pytest.raises(QueryError) as caught:
        parse(question)
    _, line, mark = with_pointer(question, caught.value).message.splitlines()
    assert len(line) <= 80
    at = caught.value.column - 1
    assert line[len(mark) - 1 :].rstrip("…") in question[at:] or at == len(question)


async def test_the_tool_tells_facts_as_data_and_taints_where_others_said_them(service):
    own = await recalled(service, "FIND fact FROM user DEPTH 1")
    assert own.text == "```text\n- user sister name klara\n```"
    assert (own.tainted, own.is_error) == (False, False)
    both = await recalled(service, "Klara")
    assert "- klara owes otto" in both.text
    assert both.tainted
    assert not (await recalled(service, "zeppelins", SessionKey("chat:new"))).tainted
    wrong = await recalled(service, "FIND nothing")
    assert wrong.is_error
    assert "^" in wrong.text


@pytest.mark.parametrize("query", ["Klara", "FIND fact FROM klara DEPTH 3", "user", "bern home"])
async def test_other_sessions_see_what_was_said_in_them_alone(service, query):
    await recalled(service, "Klara")
    group = await recalled(service, query, GROUP)
    assert "bern" not in group.text.replace("'bern'", "")
    assert "sister" not in group.text
    other = await recalled(service, query, SessionKey("isolated:job"))
    assert "otto" not in other.text
    assert "- " not in other.text
    assert "klara owes otto" in (await recalled(service, "Klara", GROUP)).text


@pytest.mark.parametrize(
    "query",
    [
        "FIND fact FROM 'sister Klara'",
        "FIND fact FROM boss",
        "FIND fact FROM chief",
        "What does my boss get?",
        "FIND fact FROM klara WHERE subject = 'sister Klara'",
        "FIND concept FROM klara WHERE label = boss",
        "FIND fact WHERE predicate = owes AND NOT subject != 'sister Klara'",
    ],
)
async def test_other_sessions_do_not_learn_who_has_the_owners_names(service, query):
    assert "- klara owes otto" in (await recalled(service, query)).text
    assert "- " not in (await recalled(service, query, GROUP)).text
    assert (await service.picture("sister Klara", scopes=(GROUP,))).nodes == ()


async def test_other_sessions_are_told_no_label_that_is_like_an_owners_name(service):
    assert "did you mean otto" in (await recalled(service, "FIND fact FROM ottto")).text
    assert "did you mean" not in (await recalled(service, "FIND fact FROM bosss", GROUP)).text
    assert "did you mean klara" in (await recalled(service, "FIND fact FROM klarra", GROUP)).text


async def test_a_label_that_others_alone_have_said_taints_where_it_is_proposed(home, service):
    proposed = await recalled(service, "FIND fact FROM ottto")
    assert "did you mean otto" in proposed.text
    assert proposed.tainted
    own = await recalled(service, "FIND fact FROM klarra")
    assert ("did you mean klara" in own.text, own.tainted) == (True, False)
    await home.learn(fact("f3", "boss", "Otto"))  # the owner says the name himself from now on
    assert not (await recalled(service, "FIND fact FROM ottto")).tainted


async def test_words_that_name_nothing_are_about_what_was_recalled_last(service):
    assert "- " not in (await recalled(service, "and where does she live?")).text
    await recalled(service, "FIND fact FROM user DEPTH 1")
    assert "klara home bern" in (await recalled(service, "and where does she live?")).text
    assert "- " not in (await recalled(service, "and she?", SessionKey("chat:b"))).text
    service.deleted(MAIN)
    assert "- " not in (await recalled(service, "and where does she live?")).text


async def test_what_is_recalled_fades_from_then_on(service, store):
    await recalled(service, "Klara")
    (trace,) = [
        t for t in await store.traces([e.fact for e in await store.episodes()]) if not t.stands
    ]
    assert (trace.said, trace.since) == (NOW - timedelta(days=7), NOW)


async def test_a_picture_tells_which_memory_each_fact_is_in(service):
    picture = await service.picture("klara")
    told = {arrow.predicate: arrow.history for arrow in picture.arrows}
    week = timedelta(days=7)
    assert told["home"].memory == told["sister_name"].memory == "semantic"
    assert told["owes"] == FactHistory(1, 0, 0, NOW - week, NOW - week, stands=False)
    assert (await service.picture("klara", scopes=(GROUP,))).arrows[0].history == told["owes"]


async def test_the_tool_passes_the_way_of_a_question_on(service):
    far = await recalled(service, "FIND fact FROM user BY breadth DEPTH 3")
    assert far.text.splitlines()[1] == "- user sister name klara"
    assert "- klara owes otto" in far.text
    near = await recalled(service, "FIND fact FROM user BY activation DEPTH 1")
    assert near.text == "```text\n- user sister name klara\n```"
    wrong = await recalled(service, "FIND path FROM user BY activation")
    assert wrong.is_error
    assert "line 1, column 24" in wrong.text


async def test_answers_and_pictures_survive_the_wire(service):
    for answer in (
        await service.ask("FIND path FROM user, nobody DEPTH 2"),
        await service.ask("?"),
    ):
        assert answer_of(json.loads(json.dumps(answer_json(answer)))) == answer
    for name, by in (
        ("user", TraversalMode.PATHS),
        ("klara", TraversalMode.ACTIVATION),
        ("nobody", TraversalMode.BREADTH),
    ):
        picture = await service.picture(name, by=by)
        assert picture_of(json.loads(json.dumps(picture_json(picture)))) == picture
