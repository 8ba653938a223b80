"""A daemon that goes on and on takes no more than it did before."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from statistics import median

import pytest
from msgspec import Struct

from tests.e2e.harness import Client, Daemon, Home

PER_SESSION = 10
ROUND = 100  # turns between two looks
WAL = 16 << 20  # bytes, of each database
MIB = 1 << 20
# MiB beyond what the index says. While the caches fill, a round takes up to half a MiB.
GROWTH = 6.0  # from turn 2,000 to 10,000; the goal is 1
EARLY = 3.0  # from turn 300 to 500
LEFT_OPEN = 5  # connections of a round in the control, each
UNENDED = 500_000  # bytes into a line that never ends
MORE = 2  # descriptors and threads that may come and go


class Seen(Struct, frozen=True):
    """What a daemon holds at some moment."""

    beyond_index: float  # MiB of its own memory; the pages of files are not
    index: float  # MiB
    descriptors: int
    threads: int
    wal: int  # bytes, of the largest
    strays: frozenset[str]  # temporary files


async def turns(client: Client, first: int, count: int) -> None:
    """Sessions of ten turns each: most of talk, one with a tool, and a write and a search
    between.
    """
    for start in range(first, first + count, PER_SESSION):
        made = await client.call("session/new", {"cwd": "/", "mcpServers": []})
        session = made["sessionId"]
        for number in range(start, start + PER_SESSION - 1):
            said = await client.say(f"say answer {number}", f"m{number}", session)
            assert said == f"answer {number}"
        number = start + PER_SESSION - 1
        asked = json.dumps({"query": f"answer {start}"})
        said = await client.say(f"do search {asked}; say found {number}", f"m{number}", session)
        assert said == f"found {number}"
        await client.call("_agentd/memory/write", {
            "target": "daily_log", "append": True, "content": f"- number {start} was asked about",
        })  # fmt: skip
        await client.call("_agentd/memory/search", {"query": f"answer {start}"})
        await client.call("session/close", {"sessionId": session})


async def seen(client: Client, daemon: Daemon) -> Seen:
    await client.call("_agentd/memory/index")
    index = (await client.call("_agentd/status"))["index"]["bytes"]
    return await asyncio.to_thread(looked, daemon, index)


def looked(daemon: Daemon, index: int) -> Seen:
    process, root = Path(f"/proc/{daemon.process.pid}"), daemon.home.root
    lines = (process / "smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    files = [*root.rglob(".agentd-*"), *root.rglob("*.tmp"), *root.rglob("*-journal")]
    return Seen(
        own / 1024 - index / MIB,
        index / MIB,
        len(list((process / "fd").iterdir())),
        len(list((process / "task").iterdir())),
        max(wal.stat().st_size for wal in (root / "state").glob("*-wal")),
        frozenset(file.name for file in files),
    )


async def soaked(home: Home, rounds: int, *, each: int = ROUND, left_open: int = 0) -> list[Seen]:
    """What was seen after each round of so many turns; in each, so many connections are left open,
    and the daemon with a line that does not end.
    """
    daemon = await home.start_alone()
    client = await daemon.connect()
    found = []
    for number in range(rounds):
        await turns(client, number * each, each)
        for _ in range(left_open):
            (await daemon.connect()).write(b'{"' + b"x" * UNENDED)
        found.append(await seen(client, daemon))
        client.lines.clear()
        print(f"{(number + 1) * each} turns: {found[-1]}")
    await daemon.stop()
    return found


def grown(early: list[Seen], late: list[Seen]) -> float:
    """By how many MiB memory beyond the index has grown: medians of rounds."""
    first, last = (median(one.beyond_index for one in part) for part in (early, late))
    return last - first


def check(first: Seen, last: Seen) -> None:
    """What a daemon may not hold more and more of."""
    assert last.descriptors <= first.descriptors + MORE
    assert last.threads <= first.threads + MORE
    assert last.strays == first.strays == frozenset()
    assert last.wal < WAL


async def test_five_hundred_turns_leave_nothing_behind(home: Home) -> None:
    found = await soaked(home, rounds=5)
    check(found[0], found[-1])
    assert grown(found[2:3], found[4:]) <= EARLY


async def test_a_daemon_that_is_made_to_hold_ever_more_is_noticed(home: Home) -> None:
    found = await soaked(home, rounds=5, each=PER_SESSION, left_open=LEFT_OPEN)
    assert found[-1].descriptors > found[0].descriptors + MORE
    assert grown(found[2:3], found[4:]) > EARLY


@pytest.mark.torture
@pytest.mark.timeout(3600)
async def test_memory_grows_by_no_more_than_is_known_from_turn_2000_to_10000(home: Home) -> None:
    found = await soaked(home, rounds=100)
    check(found[20], found[-1])
    assert found[-1].index > 2 * found[20].index  # so that what it holds is told, not left out
    print(f"grown by {grown(found[15:25], found[-10:]):.2f} MiB beyond the index")
    assert grown(found[15:25], found[-10:]) <= GROWTH
