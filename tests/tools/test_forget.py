"""The tool `forget` erases what the user's words mean for certain, and shows what they may mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from agentd.core.errors import NotFound, ToolFailed
from agentd.core.fact import Category, ErasureReport, Fact, FactSource, Matches, Mention
from agentd.core.tool import Approval, ToolCall
from agentd.core.turn import MAIN, Origin, SessionKey, kind_of
from agentd.interfaces.tools.forget import Forget

AT = datetime(2026, 5, 4, tzinfo=UTC)


def a_fact(fact_id: str, text: str) -> Fact:
    return Fact(fact_id, text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, AT, AT)


REX, TEA = a_fact("a1", "The user's dog is called Rex."), a_fact("b2", "The user likes tea.")


@dataclass
class Facts:
    """Knows facts by their ids, and by words what they mean."""

    means: dict[str, Matches] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    is_gone: bool = False
    report: ErasureReport = field(
        default_factory=lambda: ErasureReport(
            {"notes": 2}, (Mention(1, "memory/pets.md:3", "Rex by hand"),)
        )
    )

    async def matching(self, query: str, *, every: bool = False) -> Matches:
        known = {fact.id: fact for fact in (REX, TEA)}
        named = tuple(known[word] for word in query.split() if word in known)
        return Matches(named) if named else self.means.get(query, Matches())

    async def forget(self, fact_ids, also=(), session="", typed="") -> ErasureReport:
        assert session == MAIN
        if self.is_gone:
            raise NotFound("gone")
        self.forgotten += fact_ids
        return self.report


@dataclass
class Names:
    """Text from outside has named these places."""

    outside: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    async def has_outside_name(self, places) -> bool:
        self.asked += places
        return not set(self.outside).isdisjoint(places)


@dataclass
class Gate:
    answer: bool = False
    asked: list[Approval] = field(default_factory=list)

    async def approve(self, approval: Approval) -> bool:
        self.asked.append(approval)
        return self.answer

    async def intend(self, intent=None) -> None:
        raise AssertionError("facts go without an intent")


def called(session="main", origin=Origin.USER, *, tainted=False, **given) -> ToolCall:
    key = SessionKey(session)
    return ToolCall("c", "forget", given, key, kind_of(key), origin, tainted=tainted)


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ({"query": "my dog"}, ["a1"]),
        ({"query": "a1"}, ["a1"]),
        ({"ids": ["a1"]}, ["a1"]),
        ({"ids": ["a1", "b2"]}, ["a1", "b2"]),
    ],
)
async def test_what_is_meant_for_certain_goes_unasked_and_is_not_said_again(given, gone):
    facts, gate = Facts({"my dog": Matches((REX,))}), Gate()
    out = await Forget(facts, Names()).run(called(**given), gate)
    assert (facts.forgotten, gate.asked, out.is_error) == (gone, [], False)
    assert "memory/pets.md:3" in out.text
    assert "Rex" not in out.text


@pytest.mark.parametrize(
    "matches", [Matches((REX, TEA)), Matches(maybe=(REX, TEA)), Matches(maybe=(REX,))]
)
async def test_what_may_be_meant_is_listed_with_its_ids(matches):
    facts, gate = Facts({"that": matches}), Gate(answer=True)
    out = await Forget(facts, Names()).run(called(query="that"), gate)
    assert (facts.forgotten, gate.asked) == ([], [])
    assert f"a1: {REX.text}" in out.text
    assert "ids" in out.text


async def test_with_the_ids_that_were_chosen_goes_what_these_have_replaced_and_says_the_words():
    oldest, old = (
        replace(a_fact(i, "The user's dog was called Bo."), superseded_by=by)
        for i, by in (("o1", "o2"), ("o2", "a1"))
    )
    other = replace(a_fact("o3", "The user likes milk."), superseded_by="b2")
    facts = Facts({"my dog": Matches((REX, TEA), earlier=(oldest, old, other))})
    await Forget(facts, Names()).run(called(ids=["a1"], query="my dog"), Gate())
    assert sorted(facts.forgotten) == ["a1", "o1", "o2"]
    facts.forgotten.clear()
    await Forget(facts, Names()).run(called(ids=["a1"]), Gate())
    assert facts.forgotten == ["a1"], "of ids alone these very facts"


async def test_nothing_that_says_it_and_ids_of_none_erase_nothing():
    facts = Facts()
    assert "No fact says that" in (await Forget(facts, Names()).run(called(query="x"), Gate())).text
    assert (await Forget(facts, Names()).run(called(ids=["a1", "zz"]), Gate())).is_error
    assert (await Forget(facts, Names()).run(called(ids=["zz"]), Gate())).is_error
    with pytest.raises(ToolFailed):
        await Forget(facts, Names()).run(called(), Gate())
    assert facts.forgotten == []


@pytest.mark.parametrize("answer", [True, False])
async def test_a_turn_that_read_text_from_outside_shows_the_user_the_sentences(answer):
    facts, gate = Facts(), Gate(answer)
    out = await Forget(facts, Names()).run(called(ids=["a1", "b2"], tainted=True), gate)
    [asked] = gate.asked
    assert REX.text in asked.title
    assert TEA.text in asked.title
    assert facts.forgotten == (["a1", "b2"] if answer else [])
    assert out.is_error is not answer


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
async def test_others_and_turns_without_the_user_erase_nothing(given):
    facts, gate = Facts(), Gate(answer=True)
    with pytest.raises(ToolFailed):
        await Forget(facts, Names()).run(called(**given, query="a1"), gate)
    assert (facts.forgotten, gate.asked) == ([], [])


async def test_a_repeated_call_finds_it_forgotten():
    out = await Forget(Facts(is_gone=True), Names()).run(called(ids=["a1"]), Gate())
    assert not out.is_error
    assert "already" in out.text


@pytest.mark.parametrize("part", ["also", "pending", "backups"])
async def test_a_place_that_was_named_from_outside_taints_who_is_told_of_it(part):
    place = "shared/write this into the plan.md:1"
    kept = (Mention(1, place, "Rex"),) if part == "also" else (place,)
    report = ErasureReport({"notes": 1}, **{part: kept})
    for names in (Names(), Names((place,))):
        out = await Forget(Facts(report=report), names).run(called(ids=["a1"]), Gate())
        assert place in out.text
        assert names.asked == [place]
        assert out.tainted is bool(names.outside)


async def test_the_model_may_forget_for_the_owner_alone(tools_offered):
    assert "forget" in await tools_offered("main")
    assert "forget" not in await tools_offered("group:club")
    assert "forget" not in await tools_offered("beat")
