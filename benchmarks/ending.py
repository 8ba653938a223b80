"""How long a daemon takes to end while its model keeps silent."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from benchmarks.household import daemon, folder, model, newest_body
from benchmarks.instant_model import STALL
from benchmarks.row import Row

_TIMES = 3


async def rows() -> AsyncIterator[Row]:
    """SIGTERM in the middle of an answer that never ends."""
    with folder() as home, model() as port:
        times = [await _once(home / str(number), port) for number in range(_TIMES)]
        yield Row("SIGTERM to exit, model stalled", times, "s", below=5)


async def _once(home: Path, port: int) -> float:
    async with daemon(home, port, STALL) as running, running.client() as client:
        words = f"Are you there, {home.name}?"

        async def ask() -> None:
            with suppress(ConnectionError, RuntimeError):
                await client.say("main", words)

        async with asyncio.TaskGroup() as group:
            group.create_task(ask())
            while words.encode() not in await asyncio.to_thread(newest_body, port):
                await asyncio.sleep(0.05)
            begun = time.perf_counter()
            running.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(running.process.wait, 20)
            return time.perf_counter() - begun
