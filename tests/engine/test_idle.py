"""A session that nobody wrote in for long starts over, saved before, if that is wished."""

from __future__ import annotations

from datetime import timedelta

from agentd.core.prompt import Prompt
from agentd.core.turn import MAIN, Origin, PromptScope, TurnRequest
from agentd.engine.settings import AgentSettings
from agentd.testing import ScriptedProvider


def plainly(prompt: Prompt) -> str:
    return "NO_REPLY" if prompt.origin is Origin.FLUSH else "ok"


async def start(world, hours: int):
    world.settings = AgentSettings(idle_reset=timedelta(hours=hours))
    world.provider = ScriptedProvider(default=plainly)
    await world.start()
    await world.say("my cat is called Mia")
    return world


def origins(world) -> list[Origin]:
    return [prompt.origin for prompt in world.provider.prompts]


async def test_after_a_long_silence_the_next_message_begins_anew_and_memories_are_saved(
    world,
) -> None:
    await start(world, 4)
    world.clock.jump(timedelta(hours=4))
    turn = await world.say("hello again")
    assert turn.text == "ok"
    assert origins(world) == [Origin.USER, Origin.FLUSH, Origin.USER]
    flush, last = world.provider.prompts[1:]
    assert "Mia" in str(flush.messages)
    assert "Mia" not in str(last.messages)
    history = await world.store.load(MAIN)
    assert (history.generation, history.summary) == (1, "")
    assert all(c.ok for c in await world.store.coverages(MAIN))
    texts = [row.text for row in await world.store.rows(MAIN)]
    assert texts[0] == "my cat is called Mia", "rows stay"
    await world.say("and once more")
    assert origins(world)[3:] == [Origin.USER], "once is enough"


async def test_within_the_time_nothing_happens(world) -> None:
    await start(world, 4)
    world.clock.jump(timedelta(hours=3, minutes=59))
    await world.say("hello again")
    assert origins(world) == [Origin.USER, Origin.USER]
    assert "Mia" in str(world.provider.prompts[-1].messages)


async def test_beats_and_alerts_do_not_keep_a_conversation_alive(world) -> None:
    await start(world, 4)
    world.clock.jump(timedelta(hours=3))
    await world.store.notice(MAIN, "the bin must go out", "alert")
    beat = TurnRequest(MAIN, "look", "beat:1", Origin.HEARTBEAT, PromptScope.SESSION)
    await (await world.sessions.submit(beat)).wait()
    world.clock.jump(timedelta(hours=2))
    await world.say("hello again")
    assert origins(world) == [Origin.USER, Origin.HEARTBEAT, Origin.FLUSH, Origin.USER]
    assert "Mia" not in str(world.provider.prompts[-1].messages)


async def test_it_is_off_by_default(world) -> None:
    await start(world, 0)
    assert AgentSettings().idle_reset == timedelta(0)
    world.clock.jump(timedelta(days=400))
    await world.say("hello again")
    assert "Mia" in str(world.provider.prompts[-1].messages)
