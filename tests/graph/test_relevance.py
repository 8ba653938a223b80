"""Questions over several facts: what is told, in which order, and how much beside."""

from __future__ import annotations

import pytest

from agentd.core.fact import Triple
from agentd.memory.graph.derive import Names
from agentd.memory.graph.recall import Recollection
from agentd.memory.graph.relevance import Relevance
from agentd.testing.clock import FakeClock
from agentd.zero.naming import Aliases
from tests.graph.lines import NOW, LineGraph

LINES = """
    user sister klara
    user brother tom
    klara employer brandt
    klara hobby chess
    klara birthday may-4
    brandt city jena
    brandt founded 1886
    jena state thuringia
    tom employer acme
    acme city ulm
    user employer initech
    initech city rome
"""
KNOWN = Names(Aliases({}), [Triple(*line.split()) for line in LINES.strip().splitlines()])


def recollection(near=None, lines=LINES):
    return Recollection(LineGraph(lines), FakeClock(NOW), resolve=KNOWN.resolve, near=near)


async def asked(question, near=None, beside=5):
    answer = await recollection(near).about(question, 10, owner="user", beside=beside)
    return [str(one) for one in answer.triples]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        (
            "In which city is my sister's employer?",
            ["user sister klara", "klara employer brandt", "brandt city jena"],
        ),
        (
            "Which city has the employer of my brother?",
            ["user brother tom", "tom employer acme", "acme city ulm"],
        ),
        ("What is the city of my employer?", ["user employer initech", "initech city rome"]),
        (
            "Which state is the city of Klara's employer in?",
            ["klara employer brandt", "brandt city jena", "jena state thuringia"],
        ),
    ],
)
async def test_a_chain_is_told_whole_and_in_the_first_place(question, wanted):
    told = await asked(question)
    assert set(wanted) <= set(told[: len(wanted) + 1])
    assert len(told) <= len(wanted) + 5


async def test_nothing_is_told_that_only_the_owner_leads_to():
    told = await asked("What is my sister's hobby?", beside=None)
    assert "user sister klara" in told
    assert not [one for one in told if one.startswith(("tom", "acme", "initech"))]


async def test_relations_are_found_by_meaning_where_letters_say_nothing():
    async def near(texts, names):
        return {
            name: [0.8 if (text, name) == ("hometown", "city") else 0.1 for text in texts]
            for name in names
        }

    question = "What is the hometown of my sister's company?"
    assert (await asked(question, near, beside=1))[:2] != ["klara employer brandt"]
    assert "brandt city jena" in await asked(question, near, beside=3)


async def test_a_word_of_the_question_counts_once():
    relevance = Relevance("which city", ["city", "employer"], {})
    assert relevance.worth(["city", "city"]) < relevance.worth(["city"])
    assert relevance.worth(["employer", "city"]) < relevance.worth(["city"])


@pytest.mark.parametrize(
    ("asked", "predicate", "is_said"),
    [
        ("where does she work", "works_at", True),
        ("what is she using", "uses", False),
        ("who is her ex", "ex", True),
        ("is it in", "lives_in", False),
        ("the contract", "contains", False),
        ("Wo wohnt er", "wohnt_in", True),
    ],
)
def test_a_predicate_is_said_by_words_that_begin_alike(asked, predicate, is_said):
    assert (Relevance(asked, [predicate], {}).relevant() == [predicate]) is is_said
