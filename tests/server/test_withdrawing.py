"""`$/cancel_request`: a client takes a call back."""

from __future__ import annotations

import asyncio

import pytest

from agentd.core.event import TurnStarted
from agentd.core.turn import SessionKey

MAIN = SessionKey("main")


async def take_back(client, call_id) -> None:
    await client.notify("$/cancel_request", {"requestId": call_id})


@pytest.fixture
async def house(house):
    house.turns.go.clear()
    yield house
    house.turns.go.set()


async def test_a_prompt_that_is_taken_back_ends_its_turn_and_says_so(house):
    client = await (await house.client()).hello()
    call = await client.prompt("main", "tell me a long story", "m1")
    await client.until("_agentd/accepted")
    await take_back(client, call)
    frame = await client.answer(call)
    assert frame["error"]["code"] == -32800
    assert frame["error"]["data"]["code"] == "withdrawn"
    assert house.turns.cancelled == ["main"]
    assert await client.call("session/list"), "the connection goes on"


async def test_the_turn_of_a_client_that_only_leaves_goes_on(house):
    client = await (await house.client()).hello()
    await client.prompt("main", "tell me a long story", "m1")
    await client.until("_agentd/accepted")
    await client.close()
    await house.settle(0)
    assert house.turns.cancelled == []


async def test_a_prompt_taken_back_while_it_is_stored_ends_as_soon_as_it_is(house):
    storing = asyncio.Event()
    house.turns.before_store = storing.wait
    client = await (await house.client()).hello()
    call = await client.prompt("main", "later", "m1")
    await client.call("session/list")
    await take_back(client, call)
    assert (await client.answer(call))["error"]["code"] == -32800
    assert house.turns.cancelled == [], "another turn may be running"
    house.hub.emit(TurnStarted(MAIN, "another", "hello"))
    assert house.turns.cancelled == []
    storing.set()
    async with asyncio.timeout(10):
        while not house.turns.cancelled:
            await asyncio.sleep(0.001)
    assert house.turns.cancelled_messages == ["m1"], "that one, whichever is the oldest"


async def test_a_method_of_ours_that_is_taken_back_stops_where_it_is(open_house):
    stopped = asyncio.Event()

    async def long(params, peer):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with open_house(methods={"_agentd/long": long}) as house:
        client = await house.client()
        first = await client.send("_agentd/long")
        other = await client.send("_agentd/long")
        await take_back(client, first)
        assert (await client.answer(first))["error"]["code"] == -32800
        await asyncio.wait_for(stopped.wait(), 10)
        await take_back(client, other)
        assert (await client.answer(other))["error"]["code"] == -32800


@pytest.mark.parametrize("call_id", [77, "1", None, True, [1], {}])
async def test_what_is_no_call_of_the_client_is_not_taken_back(house, call_id):
    client = await (await house.client()).hello()
    call = await client.prompt("main", "tell me a long story", "m1")
    await client.until("_agentd/accepted")
    await take_back(client, call_id)
    await client.notify("$/cancel_request", {})
    house.turns.go.set()
    assert (await client.answer(call))["result"]["stopReason"] == "end_turn"
    await take_back(client, call)
    assert await client.call("session/list")
