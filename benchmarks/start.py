"""How long a start takes, and the commands that people wait for."""

from __future__ import annotations

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
from benchmarks.process import cpu_seconds
from benchmarks.row import Row

_STARTS = 7
_COMMANDS = 9


async def rows() -> AsyncIterator[Row]:
    """Start, `--help`, `status --json`."""
    with folder() as home, model() as port:
        walls, cpus = [], []
        for number in range(_STARTS + 1):
            begun = time.perf_counter()
            started = Daemon(spawn(home, port), home)
            await first_answer(started)
            if number:  # the first one makes the workspace and the byte code
                walls.append(time.perf_counter() - begun)
                cpus.append(cpu_seconds(started.pid))
            stop(started.process)
        yield Row("process start to first answered `initialize`", walls, "s", below=0.8)
        yield Row("CPU of the daemon until then", cpus, "s")
        yield Row(
            "`agentd --help`", [_command(home, "--help") for _ in range(_COMMANDS)], "ms", 200
        )
        async with daemon(home, port) as running:
            await running.settled()
            times = [_command(home, "status", "--json") for _ in range(_COMMANDS)]
            yield Row("`agentd status --json`", times, "ms", below=200)


def _command(home: Path, *words: str) -> float:
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "agentd", *words],
        env=environment(home),
        check=True,
        capture_output=True,
    )
    return (time.perf_counter() - begun) * 1000
