"""The scripted model and the scorer of conversations: a figure is only worth what these are."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from benchmarks.conversations.conversation import Conversation, Expected, Turn, fits
from benchmarks.conversations.everyday import CHANGES, PAIRS, everyday
from benchmarks.conversations.faults import Fallible, Mistake, beyond
from benchmarks.conversations.model import Message, Model, said_in
from benchmarks.conversations.player import Played
from benchmarks.conversations.reading import others, own, span_with, written
from benchmarks.conversations.scoring import score

KASSEL = Expected("old", "The user lives in Kassel.", (("kassel",),), "I live in Kassel now")
FULDA = Expected(
    "new", "The user lives in Fulda.", (("fulda",),), "we moved to Fulda", replaces=("old",)
)
DOG = Expected("dog", "The user's dog is Rex.", (("rex",),), "our dog is Rex")
TALK = Conversation(
    "moving",
    (
        (Turn("I live in Kassel now, and our dog is Rex.", "Nice.", knows=(KASSEL, DOG)),),
        (
            Turn("By the way, we moved to Fulda.", "Oh.", knows=(FULDA,), never=(("paris",),)),
            Turn("Forget my dog.", forgets=("dog",), canary="rex"),
        ),
    ),
)
EVERYTHING = [*own(), everyday(), written("short_answers"), *others()]


def request(said: str, known: str = "") -> dict[str, Any]:
    """A request to learn, as the wire has it."""
    text = (
        f'<data source="known facts">\n{known}\n</data>\n\n<data '
        f'source="conversation">\n{said}\n</data>\n\nNow.'
    )
    return {"messages": [{"role": "user", "content": text}]}


def played(*active: str, talk: Conversation = TALK) -> Played:
    facts = [{"id": f"x{n}", "text": text, "status": "active"} for n, text in enumerate(active)]
    return Played(talk, facts=facts)


@pytest.mark.parametrize("conversation", EVERYTHING, ids=lambda one: one.name)
def test_every_expected_fact_is_quoted_from_its_message_and_says_itself(
    conversation: Conversation,
) -> None:
    for turn in conversation.turns():
        for fact in turn.knows:
            assert fact.quote in turn.user
            assert fact.is_said_by(fact.text)
        for named in (*turn.ends, *turn.repeats, *turn.forgets):
            assert named in conversation.facts


def test_the_model_finds_messages_of_several_lines_and_what_is_known() -> None:
    said = "[1 agent 2026-05-04 09:39] Well?\n[2 user 2026-05-04 09:40] one\n  two"
    assert list(said_in(request(said)["messages"][0]["content"])) == [
        Message(1, False, "Well?"),
        Message(2, True, "one\ntwo"),
    ]


def test_the_model_adds_what_is_new_replaces_what_was_and_repeats_what_is_known() -> None:
    model = Model(TALK)
    first = "[1 user 2026-05-04 09:40] I live in Kassel now, and our dog is Rex."
    items = json.loads(model.answer(request(first)).text)
    assert [(item["op"], item["content"]) for item in items] == [
        ("add", KASSEL.text),
        ("add", DOG.text),
    ]
    known = "[k1 since 2026-05-04] The user lives in Kassel."
    items = json.loads(model.answer(request(first, known)).text)
    assert [(item["op"], item.get("ids")) for item in items] == [("same", ["k1"]), ("add", None)]
    then = "[1 user 2026-06-04 09:40] By the way, we moved to Fulda."
    (item,) = json.loads(model.answer(request(then, known)).text)
    assert (item["op"], item["ids"], item["quote"]) == ("replace", ["k1"], FULDA.quote)


def test_the_model_says_nothing_of_the_agents_words() -> None:
    said = "[1 agent 2026-05-04 09:40] I live in Kassel now, and our dog is Rex."
    assert json.loads(Model(TALK).answer(request(said)).text) == []


def test_the_model_says_nothing_of_a_document_that_has_the_users_words() -> None:
    said = "[1 user 2026-05-04 09:40] Look at this.\n  - I live in Kassel now, and our dog is Rex."
    assert json.loads(Model(TALK).answer(request(said)).text) == []


def test_the_model_knows_a_long_message_of_which_the_middle_is_left_out() -> None:
    long = f"{DOG.quote}. " + "It rained. " * 900
    fact = Expected("dog", DOG.text, DOG.keywords, DOG.quote)
    model = Model(Conversation("long", ((Turn(long, knows=(fact,)),),)))
    shown = f"{long[:4000]}\n  […]\n  {long[-4000:]}"
    (item,) = json.loads(model.answer(request(f"[1 user 2026-05-04 09:40] {shown}")).text)
    assert item["content"] == DOG.text


def test_the_model_marks_the_sentence_that_says_what_is_to_be_forgotten() -> None:
    text = (
        "[k7] The user's dog is Rex.\n\n[1 sessions/main.jsonl:4] Noted. Rex is "
        "your dog. What else?"
    )
    answer = Model(TALK).answer({"messages": [{"role": "user", "content": text}]})
    assert json.loads(answer.text) == [{"n": 1, "span": "Rex is your dog."}]


def test_right_facts_have_nothing_wrong_and_every_lapse_is_counted() -> None:
    assert score([played("The user lives in Fulda.")]).wrong == []
    stale = score([played("The user lives in Fulda.", "The user lives in Kassel.")])
    assert (stale.updated, stale.updates) == (0, 1)
    assert score([played()]).found == 0
    assert score([played("The user lives in Fulda.", "Fulda is home.")]).twice == 1
    assert score([played("The user lives in Fulda.", "The user loves Paris.")]).lured == 1
    assert score([played("The user lives in Fulda.", DOG.text)]).known_still == 1


def test_a_number_stands_only_for_itself() -> None:
    assert fits("at 9 o'clock", (("9",),))
    assert not fits("at 9:30", (("9",),))
    assert not fits("95 euros", (("9",),))


def test_a_quote_is_the_shortest_clause_of_three_words_that_has_what_is_asked() -> None:
    message = "Hi, well: our dog is Rex, he is 9. The rest is silence."
    assert span_with(message, (("rex",),)) == "our dog is Rex"
    assert span_with("Rex", (("rex",),)) == "Rex"


def test_a_fallible_model_spoils_its_share_and_remembers_each() -> None:
    model = Fallible(Random(1))
    item = {"op": "replace", "message": 1, "quote": "a b c", "content": "d", "ids": ["k1"]}
    messages = [Message(1, True, "a b c"), Message(2, True, "x y z")]
    given = model.spoil([item] * 1000, messages, {"k1": "one", "k2": "two"})
    spoilt = sum(one != item for one in given)
    assert spoilt == len(model.mistakes)
    assert 60 < spoilt < 140
    assert {mistake.kind for mistake in model.mistakes} == {"op", "ids", "quote", "message"}


def test_only_harm_that_no_mistake_explains_is_a_cascade() -> None:
    wrong = Mistake("op", {"content": FULDA.text}, {}, (KASSEL.text,), ())
    assert beyond(played(KASSEL.text), [wrong]) == []
    assert beyond(played(KASSEL.text), []) == [FULDA.text, KASSEL.text]


def test_everyday_changes_and_pairs_are_as_many_as_they_are_said_to_be() -> None:
    assert len(CHANGES) == 24
    assert len(PAIRS) == 8
    assert len(everyday().replaced()) == 24
    assert len({change.relation for change in CHANGES} | {pair.relation for pair in PAIRS}) == 32
