"""The tool `remember` keeps what the user has said, and asks about everything else."""

from __future__ import annotations

import pytest

from agentd.core.errors import ToolFailed
from agentd.core.fact import Category, Fact, FactSource, OperationResult, Refusal
from agentd.core.tool import Approval, ToolCall
from agentd.core.turn import Origin, SessionKey, kind_of
from agentd.interfaces.tools.remember import Remember, answer
from agentd.testing import FactServiceDouble, FakeClock

DOG, REX = "my dog is called Rex", "The user's dog is called Rex."


class Gate:
    """Answers, and keeps what it was asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[Approval] = []

    async def approve(self, approval: Approval) -> bool:
        self.asked.append(approval)
        return self.answer

    async def intend(self, intent=None) -> None:
        raise AssertionError("facts are kept without an intent")


def called(session: str = "main", origin=Origin.USER, *, tainted=False, **given) -> ToolCall:
    key = SessionKey(session)
    return ToolCall("c", "remember", given, key, kind_of(key), origin, tainted=tainted)


def facts(*said: str) -> FactServiceDouble:
    return FactServiceDouble(FakeClock(), said)


def texts(facts: FactServiceDouble) -> list[str]:
    return [fact.text for fact in facts.facts.values()]


async def test_his_words_are_kept_and_not_those_of_the_call():
    known, gate = facts("hello", DOG), Gate(False)
    out = await Remember(known).run(called(text="The dog is Max.", quote="called Rex"), gate)
    assert out.text == f"Remembered: {DOG}"
    assert not out.is_error
    assert (gate.asked, texts(known)) == ([], [DOG])


async def test_a_call_that_is_repeated_finds_its_fact():
    known, gate = facts(DOG), Gate(False)
    for _ in range(2):
        out = await Remember(known).run(called(text=REX, quote=DOG), gate)
    assert out.text == f"Known already: {DOG}"
    assert texts(known) == [DOG]


async def test_what_it_replaces_is_named():
    known = facts(DOG)
    [old] = await known.keep("The user's dog is called Max.")
    call = called(text=REX, quote=DOG, replaces=[old.fact.id])
    out = await Remember(known).run(call, Gate(False))
    assert out.text == f"Remembered: {DOG} It replaces: The user's dog is called Max."


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("quote", ["", "never said"])
async def test_what_he_did_not_say_is_shown_to_him_first(answer, quote):
    known, gate = facts(), Gate(answer)
    text = " The user\n hates Berlin.\x1b[8m"
    out = await Remember(known).run(called(text=text, quote=quote), gate)
    [approval] = gate.asked
    assert "The user hates Berlin." in approval.title
    assert (len(texts(known)) == 1) is answer
    assert out.is_error is not answer
    assert all(kept in approval.title for kept in texts(known)), "a yes is to what was shown"


@pytest.mark.parametrize("text", ["", " \n"])
async def test_nobody_is_asked_about_nothing(text):
    known, gate = facts(), Gate(True)
    out = await Remember(known).run(called(text=text), gate)
    assert (out.text, out.is_error) == ("Not kept: it says nothing.", True)
    assert gate.asked == []


async def test_a_yes_is_to_these_words_alone():
    known, gate = facts(), Gate(False)
    for text in ("One thing.", "Another thing.", "One thing."):
        await Remember(known).run(called(text=text), gate)
    first, second, third = (approval.digest for approval in gate.asked)
    assert first == third != second


@pytest.mark.parametrize(
    "given",
    [
        {"session": "group:a"},
        {"session": "isolated:a"},
        {"origin": Origin.HEARTBEAT},
        {"origin": Origin.FLUSH},
        {"origin": Origin.JOB},
    ],
    ids=str,
)
async def test_others_and_turns_without_the_user_keep_nothing(given):
    known, gate = facts(DOG), Gate(True)
    with pytest.raises(ToolFailed):
        await Remember(known).run(called(**given, text=REX, quote=DOG), gate)
    assert (texts(known), gate.asked) == ([], [])


async def test_after_reading_others_words_only_his_message_counts():
    known, gate = facts(DOG), Gate(True)
    call = called(tainted=True, text="The dog is Max.", quote="called Rex")
    out = await Remember(known).run(call, gate)
    assert out.text == f"Remembered: {DOG}"
    assert (texts(known), gate.asked) == ([DOG], [])


@pytest.mark.parametrize("quote", ["", "never said"])
async def test_after_reading_others_words_nothing_else_is_kept_and_nobody_is_asked(quote):
    known, gate = facts(DOG), Gate(True)
    with pytest.raises(ToolFailed) as failed:
        await Remember(known).run(called(tainted=True, text=REX, quote=quote), gate)
    assert "quote" in failed.value.cure
    assert (texts(known), gate.asked) == ([], [])


@pytest.mark.parametrize("reason", Refusal)
def test_what_is_refused_is_said_with_its_reason(reason):
    out = answer([OperationResult(reason=reason), OperationResult(reason=reason)])
    assert out.is_error
    assert out.text.startswith("Not kept: ")
    assert ";" not in out.text


def test_what_was_kept_is_told_although_something_else_was_refused():
    at = FakeClock().now()
    fact = Fact("k3f9", REX, Category.PERSONAL, FactSource.EXPLICIT, 0.9, at, at)
    learned = [
        OperationResult(fact, is_new=True),
        OperationResult(reason=Refusal.EMPTY),
        OperationResult(gone=(fact,)),
    ]
    out = answer(learned)
    assert not out.is_error
    assert out.text == f"Remembered: {REX}\nNo longer so: {REX}"


def test_the_tool_is_described_in_few_bytes_and_names_every_argument():
    spec = Remember(facts()).spec
    assert set(spec.input_schema["properties"]) == {"text", "quote", "replaces"}
    assert spec.input_schema["required"] == ["text"]
    assert all(name in spec.description for name in spec.input_schema["properties"])


async def test_the_model_may_remember_for_the_owner_alone(tools_offered):
    assert "remember" in await tools_offered("main")
    assert "remember" not in await tools_offered("group:club")
    assert "remember" not in await tools_offered("beat")
