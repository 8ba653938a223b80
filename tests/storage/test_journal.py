"""The contract of Journal, over every implementation."""

from __future__ import annotations

import pytest

from agentd.core.tool import FileAction, FileIntent, Intent, OpenCall, ToolCall, ToolOutput
from agentd.core.turn import MAIN, Origin, SessionKind, StopReason, Turn, TurnRequest


def call(call_id, **more):
    return ToolCall(call_id, "memory_write", {"n": 1}, MAIN, SessionKind.OWNER, Origin.USER, **more)


@pytest.fixture
async def turn_id(stores):
    receipt = await stores.sessions.receive(TurnRequest(MAIN, "hello", "m1"))
    await stores.sessions.begin(receipt.turn_id)
    return receipt.turn_id


async def test_an_intent_comes_back_whole(stores, turn_id):
    file = FileIntent("memory/a.md", FileAction.APPEND, "aa", "bb", b"\x00\xff bytes", 12)
    intent = Intent(call("c1", tainted=True), file)
    await stores.journal.intend(turn_id, intent)
    assert await stores.journal.open_calls() == (OpenCall(turn_id, "c1", intent),)


async def test_a_second_intent_replaces_the_first(stores, turn_id):
    empty = FileIntent("memory/a.md", FileAction.DELETE, "aa", "", b"")
    await stores.journal.intend(turn_id, Intent(call("c1")))
    await stores.journal.intend(turn_id, Intent(call("c1"), empty))
    (found,) = await stores.journal.open_calls()
    assert found.intent == Intent(call("c1"), empty)


async def test_an_answered_call_is_not_open(stores, turn_id):
    await stores.journal.intend(turn_id, Intent(call("c1")))
    await stores.journal.intend(turn_id, Intent(call("c2")))
    await stores.journal.settle(turn_id, "c1", ToolOutput("ok", is_error=True, tainted=True))
    await stores.journal.settle(turn_id, "no intent", ToolOutput("read"))
    assert [c.call_id for c in await stores.journal.open_calls()] == ["c2"]
    assert await stores.journal.outputs(turn_id) == {
        "c1": ToolOutput("ok", is_error=True, tainted=True),
        "no intent": ToolOutput("read"),
    }


async def test_the_end_of_a_turn_closes_its_calls(stores, turn_id):
    await stores.journal.intend(turn_id, Intent(call("c1")))
    await stores.sessions.finish(turn_id, Turn(MAIN, "m1", stop_reason=StopReason.CANCELLED))
    assert await stores.journal.open_calls() == ()
