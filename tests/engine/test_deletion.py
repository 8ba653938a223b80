"""A session is deleted as a whole, never under something that works on it."""

from __future__ import annotations

import asyncio

import pytest

from agentd.core.compaction import Trigger
from agentd.core.errors import Busy, NotFound
from agentd.core.prompt import Prompt
from agentd.core.turn import MAIN, Origin
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.testing import ScriptedProvider


class Held(ScriptedProvider):
    """Calls of one origin wait until they are let go."""

    def __init__(self, origin: Origin) -> None:
        super().__init__(default=lambda p: "NO_REPLY" if p.origin is Origin.FLUSH else "ok")
        self.origin = origin
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def stream(self, prompt: Prompt):
        if prompt.origin is self.origin:
            self.reached.set()
            await self.go.wait()
        async for event in super().stream(prompt):
            yield event


async def test_what_was_said_in_a_deleted_session_is_in_no_later_prompt(world) -> None:
    await world.start()
    await world.say("the secret word is Zebra")
    await world.requests.delete(MAIN)
    await world.say("what is the word?")
    assert "Zebra" not in str(world.provider.prompts[-1].messages)
    assert [r.seq for r in await world.store.rows(MAIN)] == [1, 2]


async def test_a_session_with_a_running_turn_is_not_deleted(world) -> None:
    world.provider = Held(Origin.USER)
    await world.start()
    running = await world.submit("hello", session="chat:a")
    await world.provider.reached.wait()
    with pytest.raises(Busy):
        await world.requests.delete("chat:a")
    world.provider.go.set()
    assert (await running.wait()).text == "ok"
    await world.requests.delete("chat:a")
    with pytest.raises(NotFound):
        await world.requests.delete("chat:a")


async def test_a_session_whose_memories_are_being_saved_is_not_deleted(world) -> None:
    world.compaction_settings = CompactionSettings(background=True)
    world.provider = Held(Origin.FLUSH)
    await world.start()
    await world.say("hello")
    await world.store.set_flush_due((MAIN,))
    async with asyncio.TaskGroup() as group:
        group.create_task(world.sessions._context_room.ahead(MAIN, Trigger.RESTART))
        await world.provider.reached.wait()
        with pytest.raises(Busy):
            await world.requests.delete(MAIN)
        world.provider.go.set()
    assert len(await world.store.rows(MAIN)) == 2
    await world.requests.delete(MAIN)


@pytest.mark.parametrize("steps", [0, 1, 2, 4, 8, 16, 32])
async def test_a_message_that_meets_a_deletion_is_answered_either_way(world, steps) -> None:
    await world.start()
    await world.say("old words", session="chat:a")
    deletion = asyncio.ensure_future(world.requests.delete("chat:a"))
    for _ in range(steps):
        await asyncio.sleep(0)
    turn = await world.say("new words", session="chat:a")
    assert turn.text == "ok"
    (refused,) = await asyncio.gather(deletion, return_exceptions=True)
    texts = [row.text for row in await world.store.rows("chat:a")]
    if refused is None:
        assert texts == ["new words", "ok"]
    else:
        assert isinstance(refused, Busy)
        assert texts == ["old words", "ok", "new words", "ok"]
