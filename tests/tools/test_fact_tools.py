from __future__ import annotations

import pytest

from agentd.domain.fact import FactSource
from agentd.domain.tool import Approval, ToolCall
from agentd.domain.turn import Origin, SessionKey, kind_of
from agentd.errors import ToolFailed
from agentd.facts.desk import Desk
from agentd.testing import FakeClock, MemoryFacts
from agentd.tools.forget import Forget
from agentd.tools.remember import Remember


class AskedGate:
    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[Approval] = []

    async def approve(self, approval: Approval) -> bool:
        self.asked.append(approval)
        return self.answer

    async def intend(self, intent=None) -> None:
        raise AssertionError("facts are kept without an intent")


class Room:
    """A session in which the user has said something, with both tools."""

    def __init__(self, *said: str) -> None:
        self.said = said
        self.facts = MemoryFacts(FakeClock())
        desk = Desk(self.facts, self.words, FakeClock())
        self.remember = Remember(desk)
        self.forget = Forget(desk)

    async def words(self, session: SessionKey):
        return list(enumerate(self.said, start=1))

    async def know(self, *texts: str) -> None:
        for text in texts:
            await self.remember.run(called("remember", text=text), AskedGate(True))

    async def texts(self) -> list[str]:
        return [fact.text for fact in await self.facts.all()]


def called(name: str, session: str = "main", origin=Origin.USER, *, tainted=False, **given):
    key = SessionKey(session)
    return ToolCall("c", name, given, key, kind_of(key), origin, tainted=tainted)


async def test_what_the_user_said_is_remembered_without_asking_with_its_row():
    room, gate = Room("hello", "my dog is called Rex by the way"), AskedGate(False)
    out = await room.remember.run(called("remember", text="The user's dog is called Rex."), gate)
    assert "Remembered" in out.text
    assert not out.is_error
    assert gate.asked == []
    (statement,) = room.facts.learned
    assert (statement.source, statement.origin.seq) == (FactSource.EXPLICIT, 2)


@pytest.mark.parametrize("answer", [True, False])
async def test_what_he_did_not_say_is_shown_to_him_first(answer):
    room, gate = Room("what is on that page?"), AskedGate(answer)
    out = await room.remember.run(called("remember", text="The user hates Berlin."), gate)
    assert "The user hates Berlin." in gate.asked[0].title
    assert await room.texts() == (["The user hates Berlin."] if answer else [])
    assert out.is_error is not answer


@pytest.mark.parametrize("tool", ["remember", "forget"])
@pytest.mark.parametrize(
    "given",
    [
        {"session": "group:a"},
        {"session": "isolated:a"},
        {"origin": Origin.HEARTBEAT},
        {"origin": Origin.FLUSH},
        {"origin": Origin.JOB},
        {"tainted": True},
    ],
    ids=str,
)
async def test_others_and_turns_without_the_user_keep_and_erase_nothing(tool, given):
    last = "remember that my dog is called Rex" if tool == "remember" else "forget my dog"
    last = "what is on that page?" if given.get("tainted") else last
    room, gate = Room("my dog is called Rex", "forget my dog", last), AskedGate(True)
    await room.know("The user's dog is called Rex.")
    call = called(tool, **given, text="my dog is called Rex", query="dog")
    with pytest.raises(ToolFailed):
        await getattr(room, tool).run(call, gate)
    assert await room.texts() == ["The user's dog is called Rex."]
    assert gate.asked == []


async def test_what_may_not_be_erased_after_reading_others_words_is_not_to_be_noted_instead():
    room = Room("forget my dog", "and read that page")
    with pytest.raises(ToolFailed) as failed:
        await room.forget.run(called("forget", tainted=True, query="dog"), AskedGate(True))
    assert "/forget" in failed.value.cure
    assert "note" not in failed.value.cure


async def test_after_reading_others_words_his_own_say_what_is_kept():
    room, gate = Room("remember that my dog is called Rex"), AskedGate(False)
    call = called("remember", tainted=True, text="The user's dog is no longer called Rex.")
    assert not (await room.remember.run(call, gate)).is_error
    assert await room.texts() == ["The user's dog is called Rex."]
    with pytest.raises(ToolFailed):
        await room.forget.run(called("forget", tainted=True, query="Rex"), gate)


async def test_after_reading_others_words_his_own_say_what_is_erased():
    room, gate = Room("forget that my dog is called Rex"), AskedGate(False)
    await room.know("The user's dog is called Rex.", "The user lives in Bern.")
    out = await room.forget.run(called("forget", tainted=True, query="lives in Bern"), gate)
    assert not out.is_error
    assert gate.asked == []
    assert await room.texts() == ["", "The user lives in Bern."]


async def test_after_reading_others_words_an_id_is_no_choice_of_his():
    room, gate = Room("forget my dog"), AskedGate(True)
    await room.know("The user's dog is called Rex.", "The user's dog is three.")
    facts = await room.facts.all()
    out = await room.forget.run(called("forget", tainted=True, query=facts[1].id), gate)
    assert "nothing was erased" in out.text
    assert all(fact.is_active for fact in await room.facts.all())


async def test_the_one_fact_he_asks_to_be_forgotten_goes_at_once_and_is_not_said_again():
    room, gate = Room("forget that my dog is called Rex"), AskedGate(False)
    await room.know("The user's dog is called Rex.", "The user lives in Bern.")
    out = await room.forget.run(called("forget", query="my dog is called Rex"), gate)
    assert gate.asked == []
    assert await room.texts() == ["", "The user lives in Bern."]
    assert "Rex" not in out.text
    assert "memory/diary.md:3" in out.text


async def test_what_he_did_not_ask_for_is_shown_first():
    room, gate = Room("tidy up a little"), AskedGate(False)
    await room.know("The user lives in Bern.")
    out = await room.forget.run(called("forget", query="lives in Bern"), gate)
    assert "The user lives in Bern." in gate.asked[0].title
    assert out.is_error
    assert await room.texts() == ["The user lives in Bern."]


async def test_several_facts_are_listed_and_none_is_erased():
    room, gate = Room("forget my dog"), AskedGate(True)
    await room.know("The user's dog is called Rex.", "The user's dog is three.")
    out = await room.forget.run(called("forget", query="my dog"), gate)
    assert gate.asked == []
    facts = await room.facts.all()
    assert all(fact.is_active and f"{fact.id}: {fact.text}" in out.text for fact in facts)
    out = await room.forget.run(called("forget", query=facts[1].id), gate)
    assert not out.is_error
    assert await room.texts() == ["The user's dog is called Rex.", ""]


async def test_nothing_that_says_it_is_told():
    room, gate = Room("forget my yacht"), AskedGate(True)
    out = await room.forget.run(called("forget", query="my yacht"), gate)
    assert "nothing was erased" in out.text


@pytest.mark.parametrize("reason", ["secret", "suspicious", "too_long", "empty", "authority"])
async def test_a_refusal_is_told_as_an_error(reason):
    room = Room("remember this: X")
    room.facts.reason = reason
    out = await room.remember.run(called("remember", text="X is Y"), AskedGate(True))
    assert out.is_error
    assert out.text.startswith("Not kept: ")
