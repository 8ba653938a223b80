"""The disk refuses one call after the other; what was acknowledged is there in the end, once.

strace stands in for the disk: it fails the N-th sync, write, rename or cut of the daemon with EIO.
The sweep goes on with N until a daemon has lived through all of its work without meeting a failure.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from msgspec import Struct

from agentd.core.errors import AlreadyRunning
from agentd.storage.lock import state_lock
from tests.e2e.harness import PATIENCE, Client, Gone, Home, ModelServer, Refused, a_home
from tests.e2e.test_days_of_kills import without_a_message
from tests.e2e.test_random_kills import Talk, connected
from tests.waiting import until

CALLS = {  # how far apart the failures are that the long form sweeps
    "fsync": 1,
    "fdatasync": 1,
    "rename": 1,
    "renameat": 1,
    "ftruncate": 1,
    "pwrite64": 9,
    "write": 9,
}
FEW, APART = 2, 11  # how many failures the short form meets, and how far apart they are
_FAILED = "(INJECTED)"

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


async def messages(talk: Talk, client: Client) -> None:
    await asyncio.wait([talk.speak(client) for _ in range(2)])


async def compaction(talk: Talk, client: Client) -> None:
    await messages(talk, client)
    await client.call("_agentd/sessions/compact", {"key": "main"})


async def facts(talk: Talk, client: Client) -> None:
    await messages(talk, client)
    await client.call("_agentd/facts/add", {"text": "My hamster is called Quastelbury."})
    await client.call("_agentd/facts/export-graph")


async def a_beat(talk: Talk, client: Client) -> None:
    (talk.home.workspace / "HEARTBEAT.md").write_text("- [ ] report milk is out\n")
    await client.call("_agentd/heartbeat/run", {"force": True})
    await messages(talk, client)


async def a_backup(talk: Talk, client: Client) -> None:
    await messages(talk, client)
    file = talk.home.root / "b.tar.gz"
    await client.call("_agentd/backup", {"file": str(file)})


SCENARIOS: dict[str, Callable[[Talk, Client], Awaitable[None]]] = {
    one.__name__: one for one in (messages, compaction, facts, a_beat, a_backup)
}


class Life(Struct, frozen=True):
    """Whether the failure was met, and whether all was done that was to be done."""

    met: bool
    is_whole: bool


async def lived(home: Home, talk: Talk, scenario: str, call: str, number: int) -> Life:
    """A life in which the N-th such call fails."""
    is_whole = False
    trace = home.root.with_suffix(".trace")
    strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "signal=none", "-o", str(trace)]
    strace += ["-e", f"trace={call}", "-e", f"inject={call}:error=EIO:when={number}"]
    with (home.root / "stderr").open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *(*strace, sys.executable, "-m", "agentd", "run"),
            env=home.environ(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,
        )
    daemon = home.started(process)
    try:
        with suppress(
            Gone, Refused, AssertionError, TimeoutError
        ):  # whatever it does to its client
            async with asyncio.timeout(PATIENCE):
                client = await connected(daemon)
                await SCENARIOS[scenario](talk, client)
                await client.call("_agentd/stop")
                await process.wait()
                is_whole = True
    finally:
        for client in home.clients:
            talk.accepted |= client.accepted
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await until(lambda: is_free(home), "the daemon below strace is gone, too")
    met = _FAILED in trace.read_text(encoding="utf-8", errors="replace")
    trace.unlink()
    return Life(met, is_whole)


def is_free(home: Home) -> bool:
    """Whether no daemon owns the home."""
    try:
        with state_lock(home.root / "state"):
            return True
    except AlreadyRunning:
        return False


async def swept(model: ModelServer, scenario: str, call: str, *, most: int, every: int) -> int:
    """How many failures of that call were met, until one life met none."""
    for count in itertools.count():
        if count == most:
            return count
        async with a_home(model) as home:
            home.furnish()
            talk = Talk(home, random.Random(count))
            life = await lived(home, talk, scenario, call, 1 + count * every)
            await talk.verify("storage")
        if life.is_whole and not life.met:  # one that was too slow to come so far is no end
            return count
    return 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("call", ["fdatasync", "write"])
async def test_a_few_failures_of_the_disk_lose_and_double_nothing(
    model: ModelServer, call: str
) -> None:
    assert await swept(model, "messages", call, most=FEW, every=APART)


@pytest.mark.torture
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_no_failure_of_the_disk_loses_or_doubles_anything(
    model: ModelServer, scenario: str, call: str
) -> None:
    met = await swept(model, scenario, call, most=10_000, every=CALLS[call])
    assert met or call in {"renameat", "ftruncate", "rename"}, "no call of the kind is made at all"


@pytest.mark.timeout(150)
async def test_what_a_failure_would_have_cost_is_found(model: ModelServer) -> None:
    async with a_home(model) as home:
        home.furnish()
        talk = Talk(home, random.Random(1))
        assert await lived(home, talk, "messages", "fdatasync", 60_000) == Life(False, True)
        assert len(talk.accepted) == 2
        without_a_message(home)
        with pytest.raises((AssertionError, Refused)):
            await talk.verify("storage")
