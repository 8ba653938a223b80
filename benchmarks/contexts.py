"""What a turn costs by how many rows are in its context."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.household import Client, Daemon, daemon, environment, folder, model
from benchmarks.plot import plot
from benchmarks.process import cpu_seconds
from benchmarks.row import Row

GOALS = {10: 8.0, 1_000: 15.0, 5_000: 30.0}  # milliseconds by rows
_ROUNDS = 5
_TURNS = 10
_SETTINGS = """context_window = 10000000
[memory_search]
index_transcripts = false
[facts]
enabled = false
"""  # nothing is compacted, and what is done behind turns is measured elsewhere


async def rows() -> AsyncIterator[Row]:
    """Imported conversations that go on."""
    curve = []
    for count, goal in GOALS.items():
        with folder() as home, model() as port:
            async with daemon(home, port, settings=_SETTINGS) as running:
                await asyncio.to_thread(_import, home, count)
                async with running.client() as client:
                    session = "chat:old"
                    await client.call("session/load", sessionId=session, cwd="/", mcpServers=[])
                    await _cost(running, client, session)
                    costs = [await _cost(running, client, session) for _ in range(_ROUNDS)]
        row = Row(f"CPU per turn, {count:,} rows in its context", costs, "ms", below=goal)
        curve.append((count, row.value))
        yield row
    goals = list(GOALS.items())
    axes = ("rows in the context", "ms of the processor")
    plot("contexts", "A turn by the length of its context", axes, {"agentd": curve, "goal": goals})


async def _cost(running: Daemon, client: Client, session: str) -> float:
    before = cpu_seconds(running.pid)
    for number in range(_TURNS):
        await client.say(session, f"How is number {number} today?")
    await running.settled()
    return (cpu_seconds(running.pid) - before) * 1000 / _TURNS


def _import(home: Path, count: int) -> None:
    file = home / "old.jsonl"
    roles = ("user", "assistant")
    lines = (
        {"role": roles[n % 2], "content": f"Words of row {n} about project {n % 97}."}
        for n in range(count)
    )
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    subprocess.run(
        [sys.executable, "-m", "agentd", "sessions", "import", str(file)],
        env=environment(home),
        check=True,
        capture_output=True,
    )
