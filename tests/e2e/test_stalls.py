"""The daemon measures how long its event loop keeps work waiting, whatever comes in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from tests.e2e.harness import Client, Home

LIMIT = 100  # ms of processor time


@asynccontextmanager
async def measured(home: Home) -> AsyncIterator[Client]:
    """A client of a daemon that has had its first turn. What happens in the block must not keep the
    event loop for longer than the limit, in processor time, which a busy machine does not lengthen.
    """
    daemon = await home.start()
    client = await daemon.connect()
    await client.say("say warm", "warm")
    began = datetime.now(UTC).isoformat(timespec="milliseconds")
    yield client
    other = await daemon.connect()
    loop = (await other.call("_agentd/status"))["loop"]
    worst = loop["worst_cpu"]
    assert worst["cpu_ms"] <= LIMIT or worst["at"] < began, worst
    await daemon.stop()


def words(client: Client) -> str:
    """All words of the model that the client was shown."""
    updates = [json.loads(line).get("params", {}).get("update", {}) for line in client.lines]
    said = (u for u in updates if u.get("sessionUpdate") == "agent_message_chunk")
    return "".join(update["content"]["text"] for update in said)


async def test_a_block_of_200_ms_is_reported_in_status_and_log_with_its_function(
    home: Home,
) -> None:
    daemon = await home.start("turn.begun:1:stall")
    client = await daemon.connect()
    assert await client.say("say hello", "m1") == "hello"
    loop = (await client.call("_agentd/status"))["loop"]
    worst = loop["worst_cpu"]
    assert loop["over_limit"] >= 1
    assert 100 < worst["cpu_ms"] <= worst["ms"]
    assert worst["reason"] == "computing"
    assert any(line.endswith(" in _stall") for line in worst["stack"]), worst
    await daemon.stop()
    log = home.complaints().splitlines()
    told = [json.loads(line) for line in log if '"loop_stalled"' in line]
    assert any("_stall" in line for entry in told for line in entry["frames"]), log


async def test_arguments_of_ten_megabytes_are_answered_without_a_stall(home: Home) -> None:
    async with measured(home) as client:
        assert await client.say("large 10000000", "m1") == "done"
        assert await client.say("say after", "m2") == "after"
    assert any("larger than any tool takes" in json.dumps(r) for r in home.requests())


async def test_more_than_a_tool_writes_is_refused_without_a_stall(home: Home) -> None:
    async with measured(home) as client:
        assert await client.say("large 200000", "m1") == "done"
    assert any("at most 65536 are written at once" in json.dumps(r) for r in home.requests())


async def test_an_answer_in_one_large_event_reaches_a_client_that_reads(home: Home) -> None:
    async with measured(home) as client:
        answer = await client.prompt("long 1400000", "m1")
        assert answer["stopReason"] == "end_turn"
        assert words(client) == "warm" + "x" * 1_400_000


async def test_an_answer_in_100000_events_reaches_a_client_that_reads(home: Home) -> None:
    async with measured(home) as client:
        assert await client.say("flood 100000", "m1") == "x" * 100_000
        assert words(client) == "warm" + "x" * 100_000
