"""A whole daemon, in this process, among clients that send bad and odd frames; a good one is beside
them.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agentd.app.application import open_app
from agentd.app.config import load
from agentd.app.logs import open_log
from agentd.core.clock import SystemClock
from agentd.core.paths import DaemonPaths, daemon_places
from tests.e2e.harness import Client
from tests.e2e.test_contract import registered
from tests.frames.visiting import bad_clients

LONGEST = 64 * 1024
# Bytes that a daemon may grow by. What it keeps of its sessions is bounded, but the bound is reached
# only after some 60,000 frames: what few frames leave is mostly that, and what many leave is not.
FEW_GROWTH = 20 << 20
MANY_GROWTH = 16 << 20
CONFIG = f"""
[agent]
timezone = "UTC"
[provider]
kind = "offline"
[memory_search]
provider = "static"
[server]
max_frame_bytes = {LONGEST}
"""


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[DaemonPaths]:
    """A daemon at work, and what it logs."""
    (folder / "config.toml").write_text(CONFIG)
    (folder / "config.toml").chmod(0o600)
    environ = {"AGENTD_HOME": str(folder)}
    places, clock = daemon_places(environ), SystemClock("UTC")
    config = load(places.config_file, environ)
    places.state_dir.mkdir(mode=0o700)
    with open_log(config.log, places.state_dir, clock, environ, io.StringIO()) as log:
        async with open_app(config, places, clock, environ, log, asyncio.Event()) as app:
            work = asyncio.create_task(app.serve())
            try:
                yield places
            finally:
                work.cancel()
                await asyncio.wait([work])


def failures(places: DaemonPaths) -> list[dict[str, Any]]:
    """What the log says of faults inside the daemon."""
    lines = [
        json.loads(line)
        for file in sorted((places.state_dir / "logs").iterdir())
        for line in file.read_text("utf-8").splitlines()
    ]
    return [line for line in lines if line["level"] in ("error", "critical") or "exception" in line]


def size() -> int:
    """Bytes of memory that this process has."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def tried(folder: Path, seed: int, first: int, frames: int, growth: int, capsys: Any) -> None:
    """A daemon lives through so many frames, and is as well as before; after the `first` of them it
    grows by no more than `growth` bytes.
    """
    async with serving(folder) as places:
        campaign = bad_clients(places.socket, str(folder), seed, frames, LONGEST)
        good = await Client.connect(places.socket)
        await campaign.run(first, good)
        before, began = size(), time.process_time()
        await campaign.run(frames, good)
        seconds = time.process_time() - began
        grown = size() - before
        alive = await campaign.greet_all(good)
        await good.close()
    told = campaign.told
    with capsys.disabled():
        rate = (frames - first) / seconds
        print(f"\n{told}; {alive} sessions alive; {grown >> 10} KiB; {rate:.0f} a second of CPU")
    assert not told.wrong, "\n".join([*told.wrong, *map(str, failures(places))])
    assert not failures(places)
    assert told.frames >= frames
    assert grown <= growth
    assert registered() <= campaign.methods


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(4))
async def test_no_frame_of_thirty_thousand_harms_a_daemon(short_path, seed, capsys) -> None:
    await tried(short_path, seed, 4_000, 8_000, FEW_GROWTH, capsys)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 120))
async def test_no_frame_of_a_million_harms_a_daemon(short_path, seed, capsys) -> None:
    await tried(short_path, seed, 60_000, 90_000, MANY_GROWTH, capsys)
