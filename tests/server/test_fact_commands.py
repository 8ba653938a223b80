"""`/remember`, `/forget` and `/undo` in a conversation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.fact import ChangeKind, FactStatus, Matches, OperationResult, Refusal
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.declared import typed
from agentd.interfaces.commands.fact_changes import FACT_CHANGES, ChangeCommands
from agentd.interfaces.commands.facts import FACTS, FactCommands
from tests.server.owned_facts import (
    AT,
    FULDA,
    KASSEL,
    PAUL,
    TEA,
    OwnedFacts,
    a_change,
    moved,
)

MAIN, GROUP = SessionKey("main"), SessionKey("group:family")


class Notes:
    """What looks for a text in the notes."""

    async def named(self, said):
        return f"notes were searched for {said}"


async def said(facts, name, text="", session=MAIN):
    known = typed(FACTS, FactCommands(facts, facts, None, Notes()))
    commands = {
        one.name: one for one in (*known, *typed(FACT_CHANGES, ChangeCommands(facts, facts, None)))
    }
    return await commands[name].act(session, text)


def kept(**fields):
    return OwnedFacts(keeps=(OperationResult(**fields),))


async def test_what_is_remembered_is_told_line_by_line_with_ids():
    facts = moved()
    told = await said(facts, "remember", " I live in Fulda ")
    assert told.splitlines() == [
        "Remembered: The user lives in Fulda. (bbbbbbbb)",
        "It replaces: The user lives in Kassel. (aaaaaaaa)",
    ]
    assert facts.asked == [("keep", "I live in Fulda", MAIN, None)]


@pytest.mark.parametrize(
    ("learned", "told"),
    [
        ({"fact": TEA}, "I know that already: The user likes tea. (cccccccc)"),
        ({"fact": PAUL, "is_new": True}, "Waits for your yes (`agentd facts pending`): Paul"),
        ({"gone": (replace(TEA, status=FactStatus.ENDED),)}, "No longer so: The user likes tea."),
        (
            {"gone": (replace(TEA, valid_to=AT + timedelta(days=1)),)},
            "Holds until 2026-05-05: The user likes tea.",
        ),
        ({"reason": Refusal.CREDENTIAL}, "Not remembered: it looks like a secret"),
        (
            {"fact": replace(TEA, status=FactStatus.SUPERSEDED), "is_new": True},
            "Remembered as what was so before: The user likes tea.",
        ),
    ],
)
async def test_whatever_becomes_of_it_is_said_in_words(learned, told):
    assert (await said(kept(**learned), "remember", "x")).startswith(told)


async def test_the_fact_that_is_meant_is_forgotten_and_not_said_again():
    facts = OwnedFacts(KASSEL, means=Matches((KASSEL,)))
    told = await said(facts, "forget", KASSEL.id)
    assert told.splitlines() == [
        "Forgotten, in 3 places.",
        "These mention the same and stay; `agentd memory forget` erases what you name:",
        "1. memory/2026-05-04.md:3: The Kassel client wants the offer.",
        "Copies that may still hold it: /backups/a.tar.gz.",
        "Still to be erased: log. `agentd status` says when it is done.",
    ]
    assert KASSEL.text not in told
    assert facts.asked == [("forget", [KASSEL.id], [])]


@pytest.mark.parametrize("means", [Matches((KASSEL, FULDA)), Matches(maybe=(KASSEL, FULDA))])
async def test_several_facts_are_offered_by_their_ids_and_none_is_erased(means):
    facts = OwnedFacts(KASSEL, FULDA, means=means)
    told = await said(facts, "forget", "lives")
    assert told.splitlines() == [
        "Which one? Nothing was erased yet.",
        "- The user lives in Kassel. → /forget aaaaaaaa",
        "- The user lives in Fulda. → /forget bbbbbbbb",
    ]
    assert facts.asked == []


async def test_facts_that_are_named_by_their_ids_are_forgotten_together():
    facts = OwnedFacts(KASSEL, FULDA, means=Matches((KASSEL, FULDA)))
    assert (await said(facts, "forget", "aaaaaaaa bbbbbbbb")).startswith("Forgotten")
    assert facts.asked == [("forget", [KASSEL.id, FULDA.id], [])]


async def test_what_no_fact_says_is_looked_for_in_the_notes():
    assert await said(OwnedFacts(), "forget", "zeppelin") == "notes were searched for zeppelin"


async def test_the_newest_change_of_this_conversation_is_taken_back():
    facts = moved()
    elsewhere = a_change(13, ChangeKind.END, "", TEA.id, session="chat:other")
    facts.made.insert(0, elsewhere)
    assert (await said(facts, "undo")).splitlines() == [
        "Taken back: The user lives in Fulda. (bbbbbbbb)",
        "Holds again: The user lives in Kassel. (aaaaaaaa)",
    ]
    assert facts.asked == [("undo", None, MAIN)]
    with pytest.raises(NotFound, match="nothing is left"):
        await said(facts, "undo")


async def test_a_change_is_taken_back_by_its_number_wherever_it_was_told():
    facts = moved()
    facts.made.insert(0, a_change(13, ChangeKind.END, "", TEA.id, session="chat:other"))
    assert await said(facts, "undo", "13") == "Holds again: The user likes tea. (cccccccc)"


@pytest.mark.parametrize("text", ["the last one", "twelve", "²", "9" * 30, "-1"])
async def test_what_is_no_number_of_a_change_is_refused_with_a_cure(text):
    facts = moved()
    with pytest.raises(InvalidRequest, match="no change's number") as caught:
        await said(facts, "undo", text)
    assert "agentd facts changes" in caught.value.cure
    assert facts.asked == []


@pytest.mark.parametrize(
    ("name", "text", "session"),
    [
        ("remember", " ", MAIN),
        ("forget", "", MAIN),
        ("remember", "tea", GROUP),
        ("forget", "tea", GROUP),
        ("undo", "", GROUP),
    ],
)
async def test_facts_need_words_and_their_owners_conversation(name, text, session):
    facts = moved()
    with pytest.raises(InvalidRequest):
        await said(facts, name, text, session)
    assert facts.asked == []
