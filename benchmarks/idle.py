"""What the daemon does when nobody asks anything of it."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator

from benchmarks.household import Daemon, daemon, folder, model
from benchmarks.process import cpu_seconds, written_bytes
from benchmarks.row import Row

_SECONDS = 30.0
_WINDOWS = 2


async def rows() -> AsyncIterator[Row]:
    """CPU and flushes to the disk."""
    with folder() as home, model() as port:
        async with daemon(home, port) as running:
            await running.settled()
            await asyncio.sleep(3)
            shares = [await _cpu_share(running) for _ in range(_WINDOWS)]
            yield Row("CPU at idle", shares, "%", below=0.1)
            if shutil.which("strace"):
                yield Row("fsyncs per minute at idle", [await _syncs(running)], "", below=1)
            before = written_bytes(running.pid)
            await asyncio.sleep(_SECONDS)
            written = written_bytes(running.pid) - before
            yield Row(f"bytes written in {_SECONDS:g} s at idle", [written], "B", below=1)


async def _cpu_share(running: Daemon) -> float:
    before = cpu_seconds(running.pid)
    await asyncio.sleep(_SECONDS)
    return (cpu_seconds(running.pid) - before) / _SECONDS * 100


async def _syncs(running: Daemon) -> float:
    words = ["strace", "-f", "-e", "trace=fsync,fdatasync,sync_file_range", "-p", str(running.pid)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        await asyncio.sleep(_SECONDS)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    return sum("sync" in line and "(" in line for line in told.splitlines()) * 60 / _SECONDS
