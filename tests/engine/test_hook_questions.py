"""What becomes of a hook's question: its calls counted, and its time over just as its answer is
stored.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agentd.core.compaction import Question
from agentd.core.turn import MAIN
from agentd.engine.budget import Charges
from agentd.engine.hook_questions import HookQuestions
from agentd.engine.loop import TurnLoop
from agentd.engine.workers import Stopping
from agentd.testing import ScriptedProvider, call


class SlowToSay:
    """A store that has stored the end of a turn long before it says so."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.stored = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def finish(self, *args: Any) -> Any:
        await self._store.finish(*args)
        self.stored.set()
        await asyncio.Event().wait()


def silent_turns(world: Any, store: Any) -> HookQuestions:
    engine = world.engine
    stopping = Stopping()
    loop = TurnLoop(
        store,
        world.journal,
        Charges(world.ledger, world.clock, lambda model, usage: 0.0),
        engine.toolbox,
        world.provider,
        world.clock,
        stopping,
        max_model_calls=5,
    )
    return HookQuestions(store, loop, engine.builder, engine.toolbox, world.clock, stopping)


class SlowToReceive(SlowToSay):
    """A store that has stored a request long before it says so."""

    async def receive(self, *args: Any) -> Any:
        receipt = await self._store.receive(*args)
        if not self.stored.is_set():
            self.stored.set()
            await asyncio.Event().wait()
        return receipt

    async def finish(self, *args: Any) -> Any:
        return await self._store.finish(*args)


QUESTION = Question("flush:1", "Be brief.", "What is to be kept?", (), frozenset())


async def test_a_call_that_failed_is_counted(world) -> None:
    world.provider = ScriptedProvider(call("write_it_down", content="4417"), "NO_REPLY")
    await world.start()
    answer = await silent_turns(world, world.store).ask(MAIN, QUESTION)
    assert (answer.text, answer.writes, answer.failed) == ("NO_REPLY", 0, 1)


async def test_an_answer_that_is_stored_is_given_though_who_asked_gives_up(world) -> None:
    world.provider = ScriptedProvider("nothing to save")
    await world.start()
    store = SlowToSay(world.store)
    silent = silent_turns(world, store)
    asking = asyncio.create_task(silent.ask(MAIN, QUESTION))
    await store.stored.wait()
    asking.cancel()
    assert (await asking).text == "nothing to save"
    assert (await silent.ask(MAIN, QUESTION)).text == "nothing to save"
    assert len(world.provider.prompts) == 1


async def test_a_question_given_up_while_it_is_stored_is_left_for_no_later_start(world) -> None:
    await world.start()
    store = SlowToReceive(world.store)
    asking = asyncio.create_task(silent_turns(world, store).ask(MAIN, QUESTION))
    await store.stored.wait()
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert await world.store.pending() == ()
    assert world.provider.prompts == []
