"""Turns that are cancelled before their place has come, while they wait, or twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agentd.core.errors import ContextOverflow, ProviderError
from agentd.core.prompt import Effect, Prompt, ToolSpec
from agentd.core.tool import ToolOutput
from agentd.core.turn import MAIN, Origin, StopReason, TurnRequest
from agentd.engine.queue import Interrupt, Interrupted
from agentd.engine.watchers import NullSink
from agentd.testing import call

BEAT = TurnRequest(MAIN, "look around", "beat:1", origin=Origin.HEARTBEAT)


class Held:
    """A provider whose first answer waits for a release; `asked` are the origins of all prompts."""

    name, model = "scripted", "scripted-1"

    def __init__(self, inner) -> None:
        self.inner = inner
        self.asked: list[Origin] = []
        self.called = asyncio.Event()
        self.release = asyncio.Event()

    async def stream(self, prompt: Prompt):
        self.asked.append(prompt.origin)
        if len(self.asked) == 1:
            self.called.set()
            await self.release.wait()
        async for event in self.inner.stream(prompt):
            yield event


async def test_a_message_that_waits_behind_a_beat_can_be_cancelled(world) -> None:
    world.provider = held = Held(world.provider)
    await world.start()
    beat = await world.sessions.submit(BEAT, NullSink())
    await held.called.wait()
    message = await world.submit("hello")
    assert world.sessions.cancel(MAIN)
    held.release.set()
    assert (await message.wait()).stop_reason is StopReason.CANCELLED
    assert (await beat.wait()).stop_reason is StopReason.END_TURN
    assert held.asked == [Origin.HEARTBEAT]


async def test_the_oldest_message_is_cancelled_and_no_beat(world) -> None:
    world.provider = held = Held(world.provider)
    await world.start()
    beat = await world.sessions.submit(BEAT, NullSink())
    await held.called.wait()
    assert not world.sessions.cancel(MAIN)
    first, second = await world.submit("one"), await world.submit("two")
    assert world.sessions.cancel(MAIN)
    held.release.set()
    assert (await first.wait()).stop_reason is StopReason.CANCELLED
    assert (await second.wait()).stop_reason is StopReason.END_TURN
    assert (await beat.wait()).stop_reason is StopReason.END_TURN


async def test_a_background_turn_that_is_given_up_in_the_queue_never_runs(world) -> None:
    world.provider = held = Held(world.provider)
    await world.start()
    message = await world.submit("long")
    await held.called.wait()
    beat = await world.sessions.submit(BEAT, NullSink())
    assert world.sessions.cancel_message(MAIN, BEAT.message_id)
    assert not world.sessions.cancel_message(MAIN, "unknown")
    held.release.set()
    assert (await message.wait()).stop_reason is StopReason.END_TURN
    assert (await beat.wait()).stop_reason is StopReason.CANCELLED
    assert held.asked == [Origin.USER]


async def test_to_cancel_again_while_what_was_cancelled_cleans_up_changes_nothing() -> None:
    interrupt, cleaning, cleaned = Interrupt(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with interrupt.guard():
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await cleaned.wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    interrupt.request()
    await cleaning.wait()
    interrupt.request()
    cleaned.set()
    with pytest.raises(Interrupted):
        await task


async def test_a_turn_that_is_cancelled_while_it_waits_keeps_what_it_used_and_called(world) -> None:
    world.patience = timedelta(hours=1)
    await world.start()
    await world.say("hi")
    away = ProviderError("down", kind="server", retryable=True, away=True)
    world.provider.say(call("memory_write", content="x"), away)
    ticket = await world.submit("go")
    while not world.sessions.is_waiting(MAIN):
        await asyncio.sleep(0)
    assert world.sessions.cancel(MAIN)
    turn = await ticket.wait()
    assert turn.stop_reason is StopReason.CANCELLED
    assert [made.name for made in turn.tool_calls] == ["memory_write"]
    assert turn.usage.total_tokens > 0
    assert turn.cost_usd > 0


async def test_after_room_was_made_results_that_are_too_long_are_clipped(world) -> None:
    class Big:
        spec = ToolSpec("big", "b", {"type": "object"}, Effect.READ_ONLY)

        async def run(self, call, gate):
            return ToolOutput("y" * 50_000)

    world.tools = (Big(),)
    await world.start()
    for number in range(3):
        await world.say(f"hello {number} " * 200)
    steps = iter((ContextOverflow("too long"), call("big")))

    def answer(prompt: Prompt):
        if prompt.origin is not Origin.USER:
            return "- said hello"
        if any(len(getattr(b, "text", "")) > 10_000 for m in prompt.messages for b in m.blocks):
            return ContextOverflow("too long")
        return next(steps, "done")

    world.provider.default = answer
    turn = await world.say("go")
    assert (turn.failure, turn.text) == (None, "done")


async def test_a_tool_whose_own_wait_ran_out_is_not_told_to_have_taken_too_long(world) -> None:
    class Refused:
        spec = ToolSpec("refused", "r", {"type": "object"}, Effect.READ_ONLY)

        async def run(self, call, gate):
            raise TimeoutError("the other side did not answer")

    world.tools = (Refused(),)
    await world.start()
    world.provider.say(call("refused"), "ok")
    await world.say("go")
    (result,) = world.provider.prompts[-1].messages[-1].blocks[:1]
    assert "failed inside agentd" in result.text


class Counting:
    """A provider that never answers a silent question, and says ok to everything else."""

    name, model = "scripted", "scripted-1"

    def __init__(self, inner) -> None:
        self.inner = inner
        self.asked: list[Origin] = []
        self.is_making_room = asyncio.Event()

    async def stream(self, prompt: Prompt):
        self.asked.append(prompt.origin)
        if prompt.origin is not Origin.USER:
            self.is_making_room.set()
            await asyncio.Event().wait()
        async for event in self.inner.stream(prompt):
            yield event


async def test_a_cancel_is_heard_while_room_is_made(world) -> None:
    world.window = 60_000
    await world.start()
    for _ in range(3):
        await world.say("some words here " * 300)
    await world.stop()
    silent = world.provider
    world.provider = counting = Counting(silent)
    await world.start()
    ticket = await world.submit("other words " * 20_000)
    await counting.is_making_room.wait()
    assert world.sessions.cancel(MAIN)
    async with asyncio.timeout(10):
        assert (await ticket.wait()).stop_reason is StopReason.CANCELLED
    assert len(counting.asked) == 1
    await world.stop()
    world.provider = silent
    await world.start()
    assert (await world.say("and now?")).stop_reason is StopReason.END_TURN
