"""A full disk refuses what is new, loses nothing that was taken, and needs no restart."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import PATIENCE, Client, Home, ModelServer, Refused, texts

MEGABYTES = 4


@pytest.fixture
async def small(model: ModelServer) -> AsyncIterator[Home]:
    """A home on a disk of its own with little room."""
    root = Path(tempfile.mkdtemp(prefix="ae-", dir="/tmp"))
    options = f"size={MEGABYTES}m,mode=0700"
    mounted = run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(root))
    if mounted.returncode:
        root.rmdir()
        pytest.skip(f"no tmpfs may be mounted here: {mounted.stderr.strip()}")
    home = Home(root, model)
    home.configure()
    home.furnish()
    try:
        yield home
        home.check()
    finally:
        await home.close()
        run("umount", str(root)).check_returncode()
        root.rmdir()


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)


class Filler:
    """A file that takes all the room there is, again and again as some is given back."""

    def __init__(self, home: Home) -> None:
        self._path = home.root / "filler"

    def fill(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        self._path.unlink()


async def test_a_full_disk_refuses_new_messages_until_there_is_room_again(small: Home) -> None:
    daemon = await small.start()
    client = await daemon.connect()
    assert await client.say("write before", "m1") == "done"
    filler = Filler(small)
    filler.fill()
    with pytest.raises(Refused) as refusal:
        await client.say(f"say {'x' * 100_000}", "m2")
    assert refusal.value.code == "storage_full"
    status = await client.call("_agentd/status")
    assert "storage_full" in [problem["code"] for problem in status["problems"]]
    assert texts(await client.export(), "user") == ["write before"]
    filler.free()
    async with asyncio.timeout(PATIENCE):
        assert await client.say("write after", "m3") == "done"
    assert daemon.process.returncode is None
    status = await client.call("_agentd/status")
    assert "storage_full" not in [problem["code"] for problem in status["problems"]]
    assert texts(await client.export(), "user") == ["write before", "write after"]
    assert small.notes().count("] before\n") == small.notes().count("] after\n") == 1
    await daemon.stop()


async def test_a_turn_that_ran_out_of_room_ends_when_there_is_some_with_its_effects_once(
    small: Home,
) -> None:
    daemon = await small.start()
    client = await daemon.connect()
    await client.say("say hello", "m0")
    words = "w" * 3000
    text = f"do write one{words} & write two{words} & write three{words}; say finished"
    running = client.prompt("gate room", "m1")
    waiting = client.prompt(text, "m2")
    await client.wait_accepted("m1", "m2")
    filler = Filler(small)
    filler.fill()
    await small.model.open_gate(small.name, "room")
    await asyncio.sleep(2.5)  # more than one try of whatever waits for room
    assert daemon.process.returncode is None, small.complaints()
    status = await client.call("_agentd/status")
    assert any(s["busy"] for s in status["sessions"]), "the turn has not waited for room"
    filler.free()
    async with asyncio.timeout(20):
        first, second = await asyncio.gather(running, waiting)
    assert first["_meta"]["agentd/text"] == "passed room"
    assert second["_meta"]["agentd/text"] == "finished", small.complaints()
    for word in ("one", "two", "three"):
        assert small.notes().count(f"] {word}w") == 1
    await daemon.stop()


async def test_the_model_is_told_of_a_file_that_found_no_room(home: Home) -> None:
    first = await home.start()
    await first.connect()  # by then the workspace is written
    await first.stop()
    daemon = await home.start("file.temp_written:1:enospc")
    client = await daemon.connect()
    text = "do write one & write two; say finished"
    assert await client.say(text, "m1") == "finished"
    (refused, done) = home.requests()[-1]["messages"][-1]["content"]
    assert refused["is_error"]
    assert "disk is full" in str(refused["content"])
    assert not done.get("is_error")
    assert (home.notes().count("] one\n"), home.notes().count("] two\n")) == (0, 1)
    await daemon.stop()


async def test_nothing_acknowledged_is_lost_by_a_kill_on_a_full_disk(small: Home) -> None:
    daemon = await small.start()
    client = await daemon.connect()
    filler = Filler(small)
    client.prompt("gate room", "m0")
    client.prompt("write kept", "m1")
    await client.wait_accepted("m0", "m1")
    filler.fill()
    await daemon.kill()
    filler.free()
    await small.model.open_gate(small.name, "room")
    daemon = await small.start()
    client = await daemon.connect()
    assert await client.say("write kept", "m1") == "done"
    assert small.notes().count("] kept\n") == 1
    assert texts(await client.export(), "user") == ["gate room", "write kept"]
    await daemon.stop()


async def test_search_answers_on_a_full_disk_and_after_a_start_on_it(small: Home) -> None:
    note = small.workspace / "memory" / "2026-11-20.md"
    note.parent.mkdir(exist_ok=True)
    note.write_text("- the boiler code is 4417\n")
    daemon = await small.start()
    client = await daemon.connect()
    found = await searched(client, "boiler code")
    assert "4417" in found["results"][0]["text"]
    filler = Filler(small)
    filler.fill()
    with note.open("r+") as file:  # where its bytes are already
        file.write("- the boiler code is 9023\n")
    found = await searched(client, "boiler code")
    assert found["results"][0]["path"] == "memory/2026-11-20.md"
    await daemon.stop()
    filler.fill()
    daemon = await small.start()
    client = await daemon.connect()
    found = await searched(client, "boiler code")
    assert found["results"][0]["path"] == "memory/2026-11-20.md"
    filler.free()
    async with asyncio.timeout(PATIENCE):
        while "9023" not in found["results"][0]["text"]:
            found = await searched(client, "boiler code")
    await daemon.stop()


async def searched(client: Client, query: str) -> dict[str, Any]:
    found: dict[str, Any] = await client.call("_agentd/memory/search", {"query": query})
    return found
