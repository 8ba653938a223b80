"""One question beside the conversation, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agentd.core.errors import ProviderError, ShuttingDown, StorageFull
from agentd.core.message import assistant
from agentd.core.ports import Provider
from agentd.core.prompt import AnswerCompleted, ModelStop, Prompt, ProviderEvent, TextDelta
from agentd.core.turn import MAIN, Origin, Usage
from agentd.engine.budget import Charges
from agentd.engine.completion import Completions
from agentd.testing import FakeClock, MemoryLedger, ScriptedProvider


def side_call(provider: Provider, clock: FakeClock | None = None) -> Completions:
    clock = clock or FakeClock()
    return Completions(provider, Charges(MemoryLedger(clock), clock, lambda model, used: 0.25))


async def test_the_answer_is_trimmed_and_charged_under_its_own_heading() -> None:
    model = ScriptedProvider("  [] \n", usage=Usage(90, 3))
    calls = side_call(model)
    answer = await calls.ask(MAIN, Origin.EXTRACTION, "Rules.", "Words.", "small-1", max_tokens=50)
    assert (answer.text, answer.is_cut) == ("[]", False)
    (prompt,) = model.prompts
    assert (prompt.system, prompt.messages[0].text) == (("Rules.",), "Words.")
    assert (prompt.model, prompt.max_tokens, prompt.origin) == ("small-1", 50, Origin.EXTRACTION)
    assert prompt.tools == ()
    ((_, session, origin, name, usage, cost),) = calls.charges.ledger.charges
    assert (session, origin, name) == (MAIN, Origin.EXTRACTION, "scripted-1")
    assert (usage, cost) == (Usage(90, 3), 0.25)


async def test_without_a_name_the_model_of_the_chat_is_asked() -> None:
    model = ScriptedProvider("yes")
    await side_call(model).ask(MAIN, Origin.SUMMARY, "Rules.", "Words.")
    assert model.prompts[0].model is None


async def test_nothing_is_asked_once_the_daemon_stops() -> None:
    model = ScriptedProvider("yes")
    calls = side_call(model)
    calls.stopping.begin()
    with pytest.raises(ShuttingDown):
        await calls.ask(MAIN, Origin.SUMMARY, "Rules.", "Words.")
    assert model.prompts == []


async def test_a_failed_call_is_raised_and_not_charged() -> None:
    calls = side_call(ScriptedProvider(ProviderError("Too many calls.", kind="rate_limited")))
    with pytest.raises(ProviderError, match="Too many"):
        await calls.ask(MAIN, Origin.SUMMARY, "Rules.", "Words.")
    assert calls.charges.ledger.charges == []


class Stopping:
    """A model that stops for a reason of its own."""

    name, model = "scripted", "scripted-1"

    def __init__(self, stop: ModelStop) -> None:
        self.stop = stop

    async def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        yield AnswerCompleted(assistant("half a"), self.stop, Usage(5, 5), self.model, self.name)


async def test_an_answer_that_was_cut_says_so() -> None:
    answer = await side_call(Stopping(ModelStop.MAX_TOKENS)).ask(MAIN, Origin.SUMMARY, "R.", "W.")
    assert (answer.text, answer.is_cut) == ("half a", True)


async def test_a_refusal_is_no_answer_and_is_charged() -> None:
    calls = side_call(Stopping(ModelStop.REFUSAL))
    with pytest.raises(ProviderError, match="refused"):
        await calls.ask(MAIN, Origin.SUMMARY, "Rules.", "Words.")
    assert len(calls.charges.ledger.charges) == 1


class Cut(ScriptedProvider):
    """Ends its stream without an answer."""

    async def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        yield TextDelta("half a")


async def test_a_stream_without_an_end_is_no_answer() -> None:
    with pytest.raises(ProviderError) as caught:
        await side_call(Cut()).ask(MAIN, Origin.SUMMARY, "Rules.", "Words.")
    assert (caught.value.kind, caught.value.retryable) == ("stream_cut", True)


class FullOnce(MemoryLedger):
    """Has no room for the first charge."""

    tried = 0

    async def charge(self, *charge, reservation=None) -> None:
        self.tried += 1
        if self.tried == 1:
            raise StorageFull
        await super().charge(*charge, reservation=reservation)


async def test_an_answer_that_is_paid_for_waits_for_room_to_be_written_down() -> None:
    clock = FakeClock()
    ledger = FullOnce(clock)
    calls = Completions(ScriptedProvider("yes"), Charges(ledger, clock, lambda model, used: 0.0))
    answered: list[str] = []

    async def asked() -> None:
        answered.append((await calls.ask(MAIN, Origin.SUMMARY, "Rules.", "Words.")).text)

    async with asyncio.TaskGroup() as group:
        group.create_task(asked())
        await clock.settle()
        assert answered == []
        await clock.advance(1)
    assert answered == ["yes"]
    assert len(ledger.charges) == 1
