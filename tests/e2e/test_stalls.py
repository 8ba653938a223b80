"""The daemon measures how long its event loop keeps work waiting, whatever comes in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from tests.e2e.harness import Client, Home
from tests.waiting import until

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
    assert worst["cpu_ms"] <= LIMIT or worst["at"] < began, json.dumps(worst, indent=1)
    await daemon.stop()


def words(client: Client) -> str:
    """All words of the model that the client was shown."""
    updates = [json.loads(line).get("params", {}).get("update", {}) for line in client.lines]
    said = (u for u in updates if u.get("sessionUpdate") == "agent_message_chunk")
    return "".join(update["content"]["text"] for update in said)


async def test_a_block_of_200_ms_is_reported_in_status_and_log_with_its_function(
    home: Home,
) -> None:
    for tries_left in reversed(range(8)):  # the thread that looks may come too late to see it
        daemon = await home.start("turn.begun:1:stall")
        client = await daemon.connect()
        assert await client.say("say hello", f"m{tries_left}") == "hello"
        loop = (await client.call("_agentd/status"))["loop"]
        await daemon.stop()
        worst = loop["worst_cpu"]
        assert loop["over_limit"] >= 1
        assert 100 < worst["cpu_ms"] <= worst["ms"]
        assert worst["reason"] == "computing"
        log = home.complaints().splitlines()
        told = [json.loads(line) for line in log if '"loop_stalled"' in line]
        assert told
        # A machine that had no time for it is told without frames.
        frames = [frame for entry in told for frame in entry.get("frames", [])]
        if any("_stall" in frame for frame in frames):
            assert any(line.endswith(" in _stall") for line in worst["stack"]), worst
            break
        assert tries_left, log


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


@pytest.mark.parametrize("events", [20_000, pytest.param(100_000, marks=pytest.mark.torture)])
async def test_an_answer_in_many_events_reaches_a_client_that_reads(
    home: Home, events: int
) -> None:
    async with measured(home) as client:
        assert await client.say(f"flood {events}", "m1") == "x" * events
        assert words(client) == "warm" + "x" * events


async def taken_in(client: Client, messages: int) -> None:
    """A transcript of so many messages, and a message in it."""
    roles = ("user", "assistant")
    lines = [
        {
            "role": roles[n % 2],
            "content": f"message {n} of boats at {n * 7}",
            "at": 1_700_000_000 + n,
        }
        for n in range(messages)
    ]
    for start in range(0, len(lines), 5000):
        part = {"key": "chat:long", "lines": lines[start : start + 5000]}
        done = await client.call(
            "_agentd/sessions/import", {**part, "more": start + 5000 < messages}
        )
    assert done["rows"] == messages
    assert await client.say("say on", "m1", "chat:long") == "on"


@pytest.mark.parametrize("messages", [10_000, pytest.param(50_000, marks=pytest.mark.torture)])
async def test_a_long_transcript_is_taken_in_and_gone_on_with_without_a_stall(
    home: Home, messages: int
) -> None:
    async with measured(home) as client:
        await taken_in(client, messages)
        while (await client.call("_agentd/memory/status"))["pending"]:
            await asyncio.sleep(0.05)


@pytest.mark.torture
@pytest.mark.timeout(600)
async def test_the_pass_that_saves_and_sums_up_50000_messages_makes_no_stall(home: Home) -> None:
    async with measured(home) as client:
        await taken_in(client, 50_000)
        await until(lambda: '"room_made"' in home.complaints(), "room is made", patience=300)


async def test_a_checklist_of_20000_items_is_looked_at_without_a_stall(home: Home) -> None:
    items = "".join(f"- [ ] look at {n} (every: 2h)\n" for n in range(20_000))
    async with measured(home) as client:
        (home.workspace / "HEARTBEAT.md").write_text(f"# Checks\n\n{items}")
        beat = await client.call("_agentd/heartbeat/run", {"force": True})
        assert beat["outcome"] == "quiet"
        assert "look at 19999" in json.dumps(home.requests()[-1]["messages"])
        explained = await client.call("_agentd/heartbeat/explain")
        assert len(explained["checklist"]["items"]) == 1000
        assert explained["checklist"]["more_items"] == 19_000
        [run] = (await client.call("_agentd/heartbeat/history"))["runs"]
        assert len(run["due_entries"]) == 100


# With 1, a little under a MiB each, the most that is read.
@pytest.mark.parametrize("share", [0.25, pytest.param(1, marks=pytest.mark.torture)])
async def test_large_notes_are_indexed_read_and_injected_without_a_stall(
    home: Home, share: float
) -> None:
    home.furnish()
    many = "".join(f"- {n}\n" for n in range(int(share * 110_000)))
    long = "- " + "lorem ipsum dolor sit amet " * int(share * 38_000)
    (home.workspace / "memory" / "2026-01-02.md").write_text(many)
    (home.workspace / "memory" / "2026-01-03.md").write_text(long * 8)
    (home.workspace / "long.md").write_text(f"# Long\n\n{long}\n")
    (home.workspace / "MEMORY.md").write_text(many)
    home.scribble(many)
    async with measured(home) as client:
        assert await client.say("do read memory/2026-01-02.md; say read", "m1") == "read"
        assert await client.say("write more", "m2") == "done"
        await client.call("_agentd/memory/index", {"words": True})
        found = await client.call("_agentd/memory/search", {"query": "dolor amet"})
        assert found["results"][0]["path"] == "long.md"


async def test_a_long_message_is_taken_without_a_stall(home: Home) -> None:
    words = "hello wörld, http://x.y/z?a=b sk-foo my name is Bob. " * 8500
    async with measured(home) as client:
        assert (await client.prompt(f"say {words}", "m1"))["stopReason"] == "end_turn"
