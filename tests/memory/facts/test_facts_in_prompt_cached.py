"""What a long talk costs while facts are learnt in it: prompts that the service has mostly read
before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from agentd.core.fact import Category, Fact, FactSource, FactStatus
from agentd.core.prompt import Prompt
from agentd.core.turn import MAIN, TurnRequest
from agentd.engine import tokens
from agentd.engine.assembly import EnginePorts, build_engine
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.compaction.plan import thresholds
from agentd.engine.context import Instructions
from agentd.engine.settings import AgentSettings
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.facts_in_prompt import FactsInPrompt
from agentd.testing import (
    Answers,
    FakeClock,
    MemoryLedger,
    MemorySessions,
    RecordingSink,
    ScriptedProvider,
)

NOW = datetime(2026, 5, 4, 9, 40, tzinfo=UTC)
TURNS = 50
CHANGES = {5: 0, 11: 1, 17: 2, 23: 3, 29: 4, 35: 5, 41: 6, 47: 7}  # the fact that each changes
ANSWER = "That sounds like a plan; tell me how it goes and what you decide about it. " * 3


def fact(number, text) -> Fact:
    said = NOW - timedelta(days=100 - number)
    return Fact(f"k{number:03}", text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, said, said)


class Learning:
    """Facts, one of which changes before some of the turns."""

    def __init__(self) -> None:
        self.facts = [fact(n, f"The user's thing number {n} is in room {n}.") for n in range(30)]

    async def all(self) -> tuple[Fact, ...]:
        return tuple(self.facts)

    def change(self, number: int) -> str:
        old, new = self.facts[number], fact(50 + number, f"Thing number {number} is in the attic.")
        past = replace(old, status=FactStatus.SUPERSEDED, valid_to=NOW, superseded_by=new.id)
        self.facts[number] = past
        self.facts.append(new)
        return new.text


class Nothing:
    """An index that is never asked."""

    model = ""


@dataclass
class Talk:
    """What the calls of a talk carried, in tokens, and how much of each had to be read anew."""

    carried: list[int]
    anew: list[int]
    prompts: list[Prompt]


async def talk(*, renewing: bool = False) -> Talk:
    """A talk in which facts change; `renewing` puts each change into the system prompt at once."""
    clock, learning = FakeClock(NOW), Learning()
    store, provider = MemorySessions(clock), ScriptedProvider(default=ANSWER)
    source = FactsInPrompt(learning, Nothing(), clock, "What you know.", FactsSettings())
    ports = EnginePorts(
        store=store,
        journal=store,
        ledger=MemoryLedger(clock),
        provider=provider,
        approver=Answers(),
        events=RecordingSink(),
        clock=clock,
        sources=(source,),
    )
    engine = build_engine(
        ports,
        Instructions("You are an agent. " * 100, "light"),
        thresholds(200_000, 4000),
        summary_prompt="summary",
        agent=AgentSettings(),
        compaction=CompactionSettings(background=False),
        price=lambda model, usage: 0.0,
    )
    async with engine.sessions.open():
        await engine.sessions.start()
        for number in range(TURNS):
            if number in CHANGES:
                learning.change(CHANGES[number])
                if renewing:
                    source.renew(MAIN)
            words = f"This is message {number}, about one of the rooms and what is kept in it."
            await (await engine.sessions.submit(TurnRequest(MAIN, words, f"m{number}"))).wait()
            await clock.advance(60)
    texts = [written(prompt) for prompt in provider.prompts]
    known = [0, *(common(one, next_) for one, next_ in pairwise(texts))]
    return Talk(
        [tokens.of_text(text) for text in texts],
        [tokens.of_text(text[size:]) for text, size in zip(texts, known, strict=True)],
        provider.prompts,
    )


def written(prompt: Prompt) -> str:
    """All of a prompt in the order in which services read and cache it."""
    return "\n".join((*prompt.system, *(m.text for m in prompt.messages)))


def common(one: str, other: str) -> int:
    """How many characters two prompts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


@pytest.fixture
async def learnt() -> Talk:
    return await talk()


async def test_a_learnt_fact_does_not_bill_the_conversation_anew(learnt) -> None:
    usual = 2 * max(learnt.anew[1:5])
    assert len(learnt.anew) == TURNS
    assert max(learnt.anew[1:]) < usual + 8 * 40  # all eight changes, a line each
    assert max(learnt.carried) > 10 * usual
    renewed = await talk(renewing=True)  # what it would cost to write each change in its place
    assert max(renewed.anew[1:]) > 10 * usual
    assert sum(learnt.anew) < 0.6 * sum(renewed.anew)


async def test_every_turn_knows_what_holds(learnt) -> None:
    for number, prompt in enumerate(learnt.prompts):
        last = prompt.messages[-1].text
        for at, which in CHANGES.items():
            assert (f"Thing number {which} is in the attic." in last) == (number >= at)
            assert (f"[k{which:03}] no longer holds" in last) == (number >= at)


async def test_the_cached_part_of_one_talk_never_changes(learnt) -> None:
    assert len({prompt.system for prompt in learnt.prompts}) == 1
    before = [prompt.messages[: prompt.cached_messages] for prompt in learnt.prompts]
    assert all(later[: len(one)] == one for one, later in pairwise(before))


async def test_what_changed_is_not_stored_with_the_message(learnt) -> None:
    earlier = "".join(message.text for message in learnt.prompts[-1].messages[:-1])
    assert "attic" not in earlier
