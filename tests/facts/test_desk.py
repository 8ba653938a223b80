from __future__ import annotations

import pytest

from agentd.domain.fact import Category, FactSource
from agentd.domain.turn import SessionKey
from agentd.errors import Busy, ProviderError
from agentd.facts.desk import Desk
from agentd.testing import FakeClock, MemoryFacts

MAIN = SessionKey("main")


class Said:
    def __init__(self, *texts: str) -> None:
        self.texts = texts

    async def __call__(self, session: SessionKey):
        return list(enumerate(self.texts, start=5)) if session == MAIN else []


def desk(*said: str):
    facts = MemoryFacts(FakeClock())
    return Desk(facts, Said(*said), FakeClock()), facts


async def texts(matches) -> list[str]:
    return [fact.text for fact in matches]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("my dog is called Rex", "The user's dog is called Rex."),
        ("remember that my dog is called Rex", "The user's dog is called Rex."),
        ("The garden gate sticks when it rains", "The garden gate sticks when it rains"),
    ],
)
async def test_a_sentence_about_me_becomes_one_about_the_user(said, kept):
    asked, facts = desk()
    learned = await asked.remember(said)
    assert learned.fact.text == kept
    assert facts.learned[0].source is FactSource.EXPLICIT


async def test_more_than_one_sentence_is_kept_whole():
    asked, _ = desk()
    said = "my dog is called Rex and he only eats fish on Fridays, which the vet allowed"
    learned = await asked.remember(said)
    assert "fish" in learned.fact.text


async def test_two_things_in_one_sentence_are_both_kept_and_told():
    asked, facts = desk()
    learned = await asked.remember("remember that my sister is called Klara and lives in Bern")
    name, home = "The user's sister is called Klara.", "The user's sister Klara lives in Bern."
    assert learned.text == f"{name} {home}"
    assert [said.text for said in facts.learned] == [name, home]
    assert [said.triple.relation for said in facts.learned] == ["sister name", "home"]


async def test_a_name_in_passing_is_not_told_as_asked_for():
    asked, _ = desk()
    learned = await asked.remember("my sister Klara lives in Bern")
    assert learned.text == "The user's sister Klara lives in Bern."


async def test_the_category_is_told_or_read():
    asked, _ = desk()
    assert (await asked.remember("Always answer in French")).fact.category is Category.INSTRUCTION
    told = await asked.remember("Blue tiles", category=Category.DECISION)
    assert told.fact.category is Category.DECISION


async def test_the_row_that_says_it_is_the_newest_one():
    asked, facts = desk("my dog is called Rex", "as I said, my dog is called Rex")
    await asked.remember("The user's dog is called Rex.", session=MAIN)
    assert (facts.learned[0].origin.session, facts.learned[0].origin.seq) == (MAIN, 6)


@pytest.mark.parametrize(
    ("query", "sure"),
    [
        ("my dog is called Rex", ["The user's dog is called Rex."]),
        ("forget that my dog is called Rex", ["The user's dog is called Rex."]),
        ("what I told you about Rex", ["The user's dog is called Rex."]),
        ("REX", ["The user's dog is called Rex."]),
        ("dogs", ["The user's dog is called Rex.", "The neighbour's dog barks."]),
        ("my home", ["The user lives in Bern."]),
        ("where my home is", []),
        ("my city", ["The user lives in Bern."]),
        ("home", []),
        ("my employer", []),
        ("dog Max", []),
        ("", []),
        ("the", []),
        ("fact0003", ["The user lives in Bern."]),
        ("fact9999", []),
    ],
)
async def test_what_a_request_means(query, sure):
    asked, _ = desk()
    for text in ("my dog is called Rex", "The neighbour's dog barks.", "I live in Bern."):
        await asked.remember(text)
    assert await texts((await asked.matching(query)).sure) == sure


async def test_what_was_just_said_is_read_before_it_is_looked_for():
    facts = MemoryFacts(FakeClock())

    async def catch_up(words: str) -> None:
        assert words == "Rex"
        await Desk(facts, Said(), FakeClock()).remember("my dog is called Rex")

    asked = Desk(facts, Said(), FakeClock(), catch_up)
    matches = await asked.matching("forget what I told you about Rex")
    assert await texts(matches.sure) == ["The user's dog is called Rex."]


@pytest.mark.parametrize("error", [ProviderError("Down.", kind="overloaded"), TimeoutError()])
async def test_what_could_not_be_read_is_not_said_to_be_unknown(error):
    async def catch_up(words: str) -> None:
        raise error

    facts = MemoryFacts(FakeClock())
    asked = Desk(facts, Said(), FakeClock(), catch_up)
    with pytest.raises(Busy, match="could not be read"):
        await asked.matching("Rex")
    await asked.remember("my dog is called Rex")
    assert await texts((await asked.matching("Rex")).sure) == ["The user's dog is called Rex."]


async def test_what_is_only_near_is_never_sure():
    asked, _ = desk()
    await asked.remember("The user lives in Bern.")
    matches = await asked.matching("lives somewhere")
    assert matches.sure == ()
    assert await texts(matches.maybe) == ["The user lives in Bern."]


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("The user's dog is called Rex.", True),
        ("The user's cat is called Rex.", False),
        ("The user is allergic to nuts.", True),
        ("The user owns a yacht.", False),
        ("", False),
    ],
)
async def test_what_was_said_is_known_by_its_telling_words(text, is_said):
    asked, _ = desk("my dog is called Rex", "I have an allergy against nuts")
    assert await asked.was_said(text, MAIN) is is_said
    assert await asked.was_said(text, SessionKey("chat:other")) is False


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        (["forget my dog"], True),
        (["forget my dog", "and now the weather?"], False),
        (["what do you know?"], False),
        ([], False),
    ],
)
async def test_only_the_last_message_asks_for_forgetting(said, asks):
    asked, _ = desk(*said)
    assert await asked.was_asked_to_forget(MAIN) is asks


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("fact0001", True),
        ("2", True),
        ("the second one", True),
        ("Rex", True),
        ("the dog called Rex", True),
        ("fact0002", False),
        ("thanks, bye", False),
        ("tell me about Rex", False),
        ("is Rex a dog?", False),
    ],
)
async def test_an_answer_to_the_question_which_one_asks_for_that_one(answer, chosen):
    asked, _ = desk("forget my pets", answer)
    fact = (await asked.remember("my dog is called Rex")).fact
    assert await asked.was_asked_to_forget(MAIN, fact) is chosen
    assert await asked.was_asked_to_forget(MAIN) is False


async def test_an_answer_to_nothing_asks_for_nothing():
    asked, _ = desk("what do you know?", "2")
    fact = (await asked.remember("my dog is called Rex")).fact
    assert await asked.was_asked_to_forget(MAIN, fact) is False


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        (("forget my dog",), ("forget", "my dog")),
        (("hello", "please remember that I like tea"), ("remember", "I like tea")),
        (("forget my dog", "the second one"), None),
        ((), None),
    ],
)
async def test_only_the_last_message_asks(said, asks):
    asked, _ = desk(*said)
    request = await asked.asked_last(MAIN)
    assert (request and (request.kind, request.text)) == asks
