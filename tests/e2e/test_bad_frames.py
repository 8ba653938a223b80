"""A real daemon among clients that send bad and odd frames over its socket; a good one is beside
them.
"""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Client, Daemon, Home, ModelServer, a_home
from tests.frames.meddling import (
    Change,
    between,
    broken,
    dead,
    doubled,
    misnumbered,
    same,
    swallowed,
)
from tests.frames.visiting import bad_clients

LONGEST = 1 << 20
GROWTH = 20 << 20  # bytes that a daemon may grow by


def size(daemon: Daemon) -> int:
    """Bytes of memory that the process has."""
    pages = int(Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def faults(home: Home) -> list[str]:
    """What the log says of faults inside the daemon."""
    lines = (home.root / "state" / "logs" / "agentd.log").read_text("utf-8").splitlines()
    found = [(json.loads(line), line) for line in lines]
    return [line for told, line in found if told["level"] == "error" or "exception" in told]


async def tried(model: ModelServer, seed: int, frames: int, wire: str, capsys: Any) -> None:
    """A daemon lives through so many frames, and is as well as before."""
    async with a_home(model, wire=wire) as home:
        daemon = await home.start()
        good = await daemon.connect()
        campaign = bad_clients(home.socket, str(home.root), seed, frames, LONGEST)
        await campaign.run(frames // 5, good)
        before = size(daemon)
        await campaign.run(frames, good)
        grown = size(daemon) - before
        alive = await campaign.greet_all(good)
        told = campaign.told
        with capsys.disabled():
            print(f"\n{told}; {alive} sessions alive; {grown >> 10} KiB")
        assert not told.wrong, "\n".join(told.wrong)
        assert not faults(home)
        assert told.frames >= frames
        assert grown <= GROWTH
        await daemon.stop()


@pytest.mark.timeout(300)
async def test_no_frame_of_thousands_harms_a_real_daemon(model: ModelServer, capsys: Any) -> None:
    await tried(model, 7, 5_000, "anthropic", capsys)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("wire", ["anthropic", "openai"])
async def test_no_frame_of_tens_of_thousands_harms_a_real_daemon(
    model: ModelServer, wire: str, capsys: Any
) -> None:
    await tried(model, 8, 25_000, wire, capsys)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (same, ""),
        (swallowed, "waited in vain for the answers"),
        (doubled, "not owed"),
        (misnumbered, "not -32700"),
        (broken, "a fault inside the daemon"),
    ],
)
async def test_a_daemon_that_answers_wrongly_is_found_out(
    running: Home, change: Change, words: str
) -> None:
    async with between(running.socket, change) as place:
        campaign = bad_clients(place, str(running.root), 3, 600, LONGEST)
        campaign.patience = 30.0 if change is same else 0.5
        good = await Client.connect(running.socket)
        await campaign.run(600, good)
        await good.close()
    found = "\n".join(campaign.told.wrong)
    assert words in found
    assert bool(found) is bool(words)


async def test_a_session_that_answers_no_more_is_found_out(running: Home) -> None:
    async with between(running.socket, dead) as place:
        campaign = bad_clients(place, str(running.root), 3, 10, LONGEST)
        campaign.patience = 0.5
        good = await Client.connect(place)
        await campaign.greet_all(good)
        await good.close()
    assert "is dead" in campaign.told.wrong[0]
