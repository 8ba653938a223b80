"""What a turn costs: CPU, memory, and how many there are in a second. The process that makes
vectors is not counted.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.household import Client, Daemon, daemon, environment, folder, model
from benchmarks.process import cpu_seconds, memory_mb
from benchmarks.row import Row

_PER_SESSION = 10  # turns in one context
_SESSIONS = 10
_ROUNDS = 5
_PARALLEL = 16
_FOR_MEMORY = 1000
_OLD_ROWS = 10_000
_LONG = 100  # turns that are still in the context


async def rows() -> AsyncIterator[Row]:
    """Memory, CPU per turn, turns per second."""
    with folder() as home, model() as port:
        async with daemon(home, port) as running:
            await running.settled()
            await asyncio.sleep(2)
            size, kind = memory_mb(running.pid, alone=True)
            yield Row(f"{kind} idle, before any model call", [size], "MB", below=66)
            await _fresh(running, 2)  # loads the SDK
            costs = [await _cost(running) for _ in range(_ROUNDS)]
            yield Row("CPU per warm turn, new session", costs, "ms", below=10)
            paces = [await _pace(running) for _ in range(_ROUNDS)]
            yield Row(f"turns/s, {_PARALLEL} sessions", paces, "/s", least=150)
            done = (
                _ROUNDS * (_SESSIONS * _PER_SESSION + _PARALLEL * _PER_SESSION) + 2 * _PER_SESSION
            )
            await _fresh(running, max(0, _FOR_MEMORY - done) // _PER_SESSION)
            await running.settled()
            size, kind = memory_mb(running.pid, alone=True)
            yield Row(f"{kind} after {max(_FOR_MEMORY, done)} turns", [size], "MB", below=135)
            costs = await _costs_with_history(running)
            yield Row(f"CPU per warm turn, {_OLD_ROWS} rows before it", costs, "ms", below=10)
            cost = await _cost_with_long_context(running)
            yield Row(f"CPU per warm turn, {_LONG} turns in the context", [cost], "ms")


async def _fresh(running: Daemon, sessions: int) -> None:
    async with running.client() as client:
        for _ in range(sessions):
            await _talk(client, await client.new_session())


async def _talk(client: Client, session: str) -> None:
    for number in range(_PER_SESSION):
        await client.say(session, f"How is number {number} today?")


async def _cost(running: Daemon) -> float:
    before = cpu_seconds(running.pid)
    await _fresh(running, _SESSIONS)
    await running.settled()
    return (cpu_seconds(running.pid) - before) * 1000 / (_SESSIONS * _PER_SESSION)


async def _pace(running: Daemon) -> float:
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(_PARALLEL):
            group.create_task(_fresh(running, 1))
    return _PARALLEL * _PER_SESSION / (time.perf_counter() - begun)


async def _costs_with_history(running: Daemon) -> list[float]:
    await asyncio.to_thread(_import, running.home)
    await running.settled()
    session = "chat:old"
    costs = []
    async with running.client() as client:
        await client.call("session/load", sessionId=session, cwd="/", mcpServers=[])
        for _ in range(_ROUNDS):
            await client.say(session, "/new")
            before = cpu_seconds(running.pid)
            await _talk(client, session)
            await running.settled()
            costs.append((cpu_seconds(running.pid) - before) * 1000 / _PER_SESSION)
    return costs


async def _cost_with_long_context(running: Daemon) -> float:
    async with running.client() as client:
        session = await client.new_session()
        for _ in range(_LONG // _PER_SESSION):
            await _talk(client, session)
        before = cpu_seconds(running.pid)
        await _talk(client, session)
        await running.settled()
        return (cpu_seconds(running.pid) - before) * 1000 / _PER_SESSION


def _import(home: Path) -> None:
    file = home / "old.jsonl"
    roles = ("user", "assistant")
    lines = (
        {"role": roles[n % 2], "content": f"Words of row {n} about project {n % 97}."}
        for n in range(_OLD_ROWS)
    )
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    subprocess.run(
        [sys.executable, "-m", "agentd", "sessions", "import", str(file)],
        env=environment(home),
        check=True,
        capture_output=True,
    )
