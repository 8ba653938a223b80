"""A daemon that goes on and on takes no more than it did before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from benchmarks.process import memory_mb
from tests.e2e.harness import Client, Daemon, Home

PER_SESSION = 10
WAL = 16 << 20  # bytes, of each database
MIB = 1 << 20
GROWTH = 32.0  # MiB in 8,000 turns beyond what the index says; the goal is 1


@dataclass(frozen=True)
class Seen:
    """What a daemon holds at some moment."""

    beyond_index: float  # MiB
    descriptors: int
    threads: int


async def turns(client: Client, first: int, count: int) -> None:
    """Sessions of ten turns each, lines written to notes and searches among them."""
    for start in range(first, first + count, PER_SESSION):
        made = await client.call("session/new", {"cwd": "/", "mcpServers": []})
        for number in range(start, start + PER_SESSION):
            said = await client.say(f"say answer {number}", f"m{number}", made["sessionId"])
            assert said == f"answer {number}"
        await client.call("_agentd/memory/write", {
            "target": "daily_log", "append": True, "content": f"- number {start} was asked about",
        })  # fmt: skip
        await client.call("_agentd/memory/search", {"query": f"answer {start}"})
        await client.call("session/close", {"sessionId": made["sessionId"]})


async def seen(client: Client, daemon: Daemon) -> Seen:
    await client.call("_agentd/memory/index")
    pid = daemon.process.pid
    index = (await client.call("_agentd/status"))["index"]
    size, _ = await asyncio.to_thread(memory_mb, pid)
    return Seen(
        size - index["bytes"] / MIB,
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        len(list(Path(f"/proc/{pid}/task").iterdir())),
    )


async def soaked(home: Home, rounds: int, count: int) -> list[Seen]:
    """What was seen after each round of so many turns."""
    daemon = await home.start_alone()
    client = await daemon.connect()
    found = []
    for number in range(rounds):
        await turns(client, number * count, count)
        found.append(await seen(client, daemon))
        client.lines.clear()
    for wal in Path(home.root, "state").glob("*-wal"):
        assert wal.stat().st_size < WAL
    await daemon.stop()
    return found


async def test_five_hundred_turns_leave_nothing_open(home: Home) -> None:
    first, *_, last = await soaked(home, rounds=5, count=100)
    assert last.descriptors <= first.descriptors + 2
    assert last.threads <= first.threads + 2


@pytest.mark.torture
async def test_memory_grows_by_no_more_than_is_known_from_turn_2000_to_10000(home: Home) -> None:
    found = await soaked(home, rounds=100, count=100)
    early, late = ([one.beyond_index for one in part] for part in (found[15:25], found[-10:]))
    assert median(late) - median(early) <= GROWTH
    assert found[-1].descriptors <= found[20].descriptors + 2
    assert found[-1].threads <= found[20].threads + 2
