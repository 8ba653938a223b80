"""Stops and failing disks at every step of a turn: nothing lost, nothing done twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentd.core.errors import ShuttingDown, StorageError, StorageFull
from agentd.core.message import ToolResult
from agentd.core.prompt import Prompt
from agentd.core.transcript import RowRole
from agentd.core.turn import MAIN, Origin
from agentd.testing import ScriptedProvider, call, check_messages

NOTE = "memory/2026-11-21.md"


class Tripwire:
    """Counts the calls of the stores it is put around, and acts at one of them."""

    def __init__(self, act: Callable[[], Awaitable[None]], *, after: bool = False) -> None:
        self.calls = 0
        self.at = 0  # never
        self._act = act
        self._after = after

    async def step(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            await self._act()

    def around(self, part: Any) -> Any:
        return Wired(part, self)

    async def passing(self, call: Awaitable[Any]) -> Any:
        if self._after:
            result = await call
            await self.step()
            return result
        try:
            await self.step()
        except BaseException:
            call.close()  # type: ignore[attr-defined]  # always a coroutine here
            raise
        return await call


class Wired:
    def __init__(self, part: Any, wire: Tripwire) -> None:
        self._part = part
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        return lambda *args, **kwargs: self._wire.passing(method(*args, **kwargs))


class WiredProvider(ScriptedProvider):
    """Takes a step before every event."""

    wire: Tripwire | None = None

    async def stream(self, prompt: Prompt):
        async for event in super().stream(prompt):
            if self.wire:
                await self.wire.step()
            yield event


class FullDisk:
    """Refuses so many calls in a row."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.wire = Tripwire(self.refuse)

    async def refuse(self) -> None:
        self.left -= 1
        self.wire.at += self.left > 0
        raise StorageFull


async def accepted(times: int, ask: Callable[[], Awaitable[object]]) -> None:
    """Ask until it is accepted, as a client does that is told to try again."""
    for _ in range(times):
        try:
            await ask()
        except StorageFull:
            continue
        return
    await ask()


def remembers(prompt: Prompt):
    """Writes one memory, then says so."""
    if prompt.origin is Origin.SUMMARY:
        return "They spoke about the dog called Max. " * 5
    if prompt.origin is Origin.FLUSH:
        return "NO_REPLY"
    last = prompt.messages[-1].blocks
    if any(isinstance(b, ToolResult) for b in last):
        return "it is noted"
    return call(
        "memory_write", f"w{len(prompt.messages)}", "I write it down", content="Max is the dog"
    )


async def check_once(world, message_id: str = "m") -> None:
    turn = await world.say("remember Max", message_id)
    assert (turn.text, turn.failure) == ("it is noted", None)
    rows = await world.store.rows(MAIN)
    said = [r.text for r in rows if r.role is RowRole.USER and r.text]
    assert said.count("remember Max") == 1
    assert world.workspace.text(NOTE).count("Max is the dog") == 1
    assert await world.store.pending() == ()
    await world.say("and now?", "later")
    for prompt in world.provider.prompts:
        check_messages(prompt.messages)


@contextlib.asynccontextmanager
async def passing_time(world):
    """A clock that runs, so that waits for disk space end."""
    over = False

    async def run() -> None:
        while not over:
            await world.clock.advance(1)
            await asyncio.sleep(0.001)

    async with asyncio.TaskGroup() as group:
        group.create_task(run())
        yield
        over = True


@pytest.mark.parametrize("after", [False, True])
async def test_a_stop_at_any_step_of_a_turn_loses_nothing_and_repeats_nothing(world, after) -> None:
    path = world.path
    for k in range(1, 200):
        wire = Tripwire(lambda: world.sessions.drain(0), after=after)
        world.path = path.with_name(f"{k}.db")
        world.workspace.files.clear()
        world.provider = provider = WiredProvider(default=remembers)
        world.wrap, provider.wire = wire.around, wire
        await world.start(begin=False)
        wire.calls, wire.at = 0, k
        await world.sessions.start()
        with contextlib.suppress(ShuttingDown):
            await world.say("remember Max", "m")
        done = wire.calls < k
        wire.at = 0
        world.wrap, provider.wire = (lambda part: part), None
        if not done:
            await world.stop()
            await world.start()
        await check_once(world)
        await world.stop()
        if done:
            break
    assert k > 12


@pytest.mark.parametrize("times", [1, 3])
async def test_a_full_disk_at_any_step_holds_a_turn_up_and_no_more(world, times) -> None:
    path = world.path
    for k in range(1, 200):
        disk = FullDisk(times)
        wire = disk.wire
        world.path = path.with_name(f"{k}.db")
        world.workspace.files.clear()
        world.provider = ScriptedProvider(default=remembers)
        world.wrap = wire.around
        await world.start()
        world.provider.say("hello")
        await world.say("hi", "before")
        wire.calls, wire.at = 0, k
        async with passing_time(world):
            await accepted(times, lambda: world.say("remember Max", "m"))
            await accepted(times, lambda: world.requests.compact(MAIN))
            disk.wire.at = 0
            await check_once(world)
            assert (await world.store.load(MAIN)).generation == 1
            assert [c.ok for c in await world.store.coverages(MAIN)] == [True]
        await world.stop()
        if disk.left == times:
            break
    assert k > 15


async def test_a_failing_disk_at_any_step_costs_at_most_one_turn(world) -> None:
    """A read that fails once is one failed turn; a write that fails leaves it to be done later."""
    path = world.path
    for k in range(1, 200):

        async def fail() -> None:
            raise StorageError("state.db is locked by another program")

        wire = Tripwire(fail)
        world.path = path.with_name(f"{k}.db")
        world.workspace.files.clear()
        world.provider = ScriptedProvider(default=remembers)
        world.wrap = wire.around
        await world.start()
        wire.calls, wire.at = 0, k
        turn = None
        with contextlib.suppress(StorageError):
            turn = await world.say("remember Max", "m")
        done = wire.calls < k
        wire.at = 0
        assert (await world.say("something else", "other")).failure is None, k
        again = await world.say("remember Max", "m")
        assert turn in (None, again)
        assert turn is None or turn.failure is None or turn.failure.code == "storage", k
        assert world.workspace.files.get(NOTE, b"").count(b"Max is the dog") <= 2
        rows = await world.store.rows(MAIN)
        said = [r.text for r in rows if r.role is RowRole.USER and r.text]
        assert said.count("remember Max") == 1, k
        assert await world.store.pending() == ()
        for prompt in world.provider.prompts:
            check_messages(prompt.messages)
        await world.stop()
        if done:
            break
    assert k > 10
