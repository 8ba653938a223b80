"""What was chosen for a session, and the turns that follow it."""

from __future__ import annotations

import pytest

from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import ToolOutput
from agentd.core.transcript import ApprovalMode, AvailableChoices, Choices
from agentd.core.turn import MAIN, Origin, SessionKey, TurnRequest
from agentd.testing import call

OFFER = AvailableChoices(("usual", "other"), ("low", "high"))


@pytest.fixture
async def offering(world):
    world.offer = OFFER
    return await world.start()


async def test_the_next_turn_uses_what_was_chosen(offering) -> None:
    await offering.store.choose(MAIN, Choices(model="other", effort="high"))
    offering.provider.say("ok")
    await offering.say("hi")
    assert (offering.provider.prompts[-1].model, offering.provider.prompts[-1].effort) == (
        "other",
        "high",
    )


async def test_what_is_no_longer_offered_is_left_to_the_configuration(offering) -> None:
    await offering.store.choose(MAIN, Choices(model="gone", effort="most"))
    offering.provider.say("ok")
    await offering.say("hi")
    assert (offering.provider.prompts[-1].model, offering.provider.prompts[-1].effort) == (None, "")


async def test_a_silent_turn_does_not_follow_the_choices(offering) -> None:
    await offering.store.choose(MAIN, Choices(model="other", effort="high"))
    beat = TurnRequest(SessionKey("main"), "go", "beat:1", Origin.HEARTBEAT)
    offering.provider.say("ok")
    await (await offering.sessions.submit(beat)).wait()
    assert (offering.provider.prompts[-1].model, offering.provider.prompts[-1].effort) == (None, "")


@pytest.mark.parametrize("mode", ApprovalMode)
async def test_tools_are_told_whether_to_ask_first(world, mode) -> None:
    seen = []

    class Looking:
        spec = ToolSpec("looking", "a", {"type": "object"}, Effect.READ_ONLY)

        async def run(self, made, gate):
            seen.append(made.careful)
            return ToolOutput("ok")

    world.tools = (Looking(),)
    await world.start()
    await world.store.choose(MAIN, Choices(mode))
    world.provider.say(call("looking", "c1"), "ok")
    await world.say("hi")
    assert seen == [mode is ApprovalMode.ASK]
