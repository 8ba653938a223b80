"""What a daemon holds as its turns go on, beyond the index that it tells of."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

from benchmarks.household import Client, Daemon, daemon, folder, model
from benchmarks.plot import plot
from benchmarks.row import Row

_TURNS = int(os.environ.get("TURNS", "10000"))
_ROUND = 100  # turns between two looks
_PER_SESSION = 10
_WARM = 2_000  # turns after which nothing should grow
_NEAR = 5  # rounds to either side that a figure is the median of
_MIB = 1 << 20


async def rows() -> AsyncIterator[Row]:
    """MiB beyond the index from turn 2,000 to the last one."""
    beyond, index = [], []
    with folder() as home, model() as port:
        async with daemon(home, port) as running, running.client() as client:
            for done in range(_ROUND, _TURNS + 1, _ROUND):
                await _talk(client, done - _ROUND, _ROUND)
                held, indexed = await _looked(running, client)
                beyond.append((done, held - indexed))
                index.append((done, indexed))
    axes = ("turns", "MiB of its own memory")
    plot("growth", "A daemon over its turns", axes, {"beyond the index": beyond, "index": index})
    yield Row(f"memory beyond the index after {_TURNS} turns", [beyond[-1][1]], "MiB")
    if _TURNS // _ROUND > 4 * _NEAR + _WARM // _ROUND:
        early = [held for done, held in beyond if abs(done - _WARM) <= _NEAR * _ROUND]
        late = [held for _, held in beyond[-2 * _NEAR :]]
        grown = median(late) - median(early)
        yield Row(f"grown from turn {_WARM} to {_TURNS}", [grown], "MiB", below=1)


async def _talk(client: Client, first: int, count: int) -> None:
    """Sessions of ten turns, with a line in a note and a search behind each."""
    for start in range(first, first + count, _PER_SESSION):
        session = await client.new_session()
        for number in range(start, start + _PER_SESSION):
            await client.say(session, f"How is number {number} today?")
        line = f"- number {start} was asked about"
        await client.call("_agentd/memory/write", target="daily_log", append=True, content=line)
        await client.call("_agentd/memory/search", query=f"number {start}")
        await client.call("session/close", sessionId=session)


async def _looked(running: Daemon, client: Client) -> tuple[float, float]:
    """MiB of anonymous memory, and of the index as `agentd status` tells it."""
    await client.call("_agentd/memory/index")
    told = await client.call("_agentd/status")
    lines = Path(f"/proc/{running.pid}/smaps_rollup").read_text().splitlines()
    held = next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    return held / 1024, told["index"]["bytes"] / _MIB
