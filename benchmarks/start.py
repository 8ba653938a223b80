"""How long a start takes, the first turn after it, and the commands that people wait for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.household import (
    Daemon,
    daemon,
    environment,
    first_answer,
    folder,
    model,
    spawn,
    stop,
)
from benchmarks.process import cpu_seconds, memory_mb
from benchmarks.row import Row

_STARTS = 7
_OPEN_FOR = 4.0  # seconds in which what a session needs is loaded, on a busy machine too
_COMMANDS = 9


async def rows() -> AsyncIterator[Row]:
    """Start, what is in memory then, the first turn, `--help`, `status --json`."""
    with folder() as home, model() as port:
        walls, cpus, sizes = [], [], []
        for number in range(_STARTS + 1):
            begun = time.perf_counter()
            started = Daemon(spawn(home, port), home)
            await first_answer(started)
            if number:  # the first one makes the workspace and the byte code
                walls.append(time.perf_counter() - begun)
                cpus.append(cpu_seconds(started.pid))
                await asyncio.sleep(2)
                sizes.append(memory_mb(started.pid)[0])
            stop(started.process)
        yield Row("process start to first answered `initialize`", walls, "s", below=0.5)
        yield Row("CPU of the daemon until then", cpus, "s", below=0.5)
        yield Row("memory of an idle daemon (PSS), no model called yet", sizes, "MB", below=66)
        for name, wait, below in (
            ("open for a while", _OPEN_FOR, 50),
            ("opened at once", 0.0, 600),
        ):
            turns = [await _first_turn(home, port, wait) for _ in range(_STARTS)]
            yield Row(f"first turn, session {name}", [t for t, _ in turns], "ms", below=below)
            yield Row(f"CPU of the daemon, session {name}", [c for _, c in turns], "ms")
        yield Row(
            "`agentd --help`", [_command(home, "--help") for _ in range(_COMMANDS)], "ms", 200
        )
        async with daemon(home, port) as running:
            await running.settled()
            times = [_command(home, "status", "--json") for _ in range(_COMMANDS)]
            yield Row("`agentd status --json`", times, "ms", below=200)


async def _first_turn(home: Path, port: int, wait: float) -> tuple[float, float]:
    """Milliseconds of the first turn of a daemon, and of its processors, in a session that was
    opened so many seconds before.
    """
    async with daemon(home, port) as running:
        await asyncio.sleep(1)
        async with running.client() as client:
            session = await client.new_session()
            await asyncio.sleep(wait)
            cpu, begun = cpu_seconds(running.pid), time.perf_counter()
            await client.say(session, "How are you?")
            took = time.perf_counter() - begun
            return took * 1000, (cpu_seconds(running.pid) - cpu) * 1000


def _command(home: Path, *words: str) -> float:
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "agentd", *words],
        env=environment(home),
        check=True,
        capture_output=True,
    )
    return (time.perf_counter() - begun) * 1000
