"""A home after years: what it costs to start it, to ask it, to look after it, to add to it and to
forget.

The home is the same at every run: notes and facts as files, transcripts by import, all of it read
and indexed with the word table's vectors. `python -m benchmarks.long_lives DIR` makes one to be
kept, and LONG_LIFE=DIR measures a copy of that. Each figure by the clock has the processor's time
beside it, which other work on the machine hardly changes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from agentd.core.workspace import FACTS_PATH
from benchmarks.conversations.player import unread
from benchmarks.household import (
    Client,
    Daemon,
    first_answer,
    folder,
    launch,
    model,
    stop,
    with_model,
)
from benchmarks.invented import Inventor
from benchmarks.process import cpu_seconds
from benchmarks.row import Row

NOTES = 5_000
SESSIONS = 2_000
MESSAGES = 25  # of each
FACTS = 10_000
ADDED = 1_000
TOGETHER = 5  # times so many
FORGOTTEN = 5
DELETED = 5
STARTS = 3
_FIRST = date(2012, 1, 1)
_SETTINGS = (
    '[agent]\ntimezone = "UTC"\n[heartbeat]\nenabled = false\n[memory_search]\nprovider = "static"\n'
    "[facts]\nmax_facts = 20000\n[budget]\nfacts_daily_tokens = 0\n"
)
_PATIENCE = 1800.0

Json = dict[str, Any]


@dataclass(slots=True)
class Taken:
    """Seconds by the clock and of the daemon's processors."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @contextmanager
    def one(self, pid: int) -> Iterator[None]:
        """Measure a block."""
        cpu, begun = cpu_seconds(pid), time.perf_counter()
        yield
        self.wall.append(time.perf_counter() - begun)
        self.cpu.append(cpu_seconds(pid) - cpu)

    def rows(self, what: str, below: float) -> Iterator[Row]:
        """Its two lines."""
        yield Row(what, self.wall, "s", below=below)
        yield Row("the same, processor", self.cpu, "s")


async def rows() -> AsyncIterator[Row]:
    """Every figure with its goal."""
    with folder() as root, model() as port:
        home = root / "home"
        if made := os.environ.get("LONG_LIFE"):
            shutil.copytree(made, home, ignore=shutil.ignore_patterns("*.sock"))
        else:
            await make(home, port)
        config = with_model(port) + _SETTINGS
        async with _running(home, config):  # a start that others came before
            await _until((home / "state" / "index.arrays").exists)
        starts, searches = Taken(), Taken()
        for _ in range(STARTS):
            begun = time.perf_counter()
            started = Daemon(launch(home, config), home)
            await first_answer(started)
            starts.wall.append(time.perf_counter() - begun)
            starts.cpu.append(cpu_seconds(started.pid))
            async with started.client() as client:
                with searches.one(started.pid):
                    found = await client.call("_agentd/memory/search", query="where is the harbour")
                if not found["results"]:
                    raise RuntimeError(found)
            stop(started.process)
        for row in (*starts.rows("start to the first answered frame", 0.5),
                    *searches.rows("first search after a start", 1.0)):  # fmt: skip
            yield row
        async with _running(home, config) as started, started.client(allows=True) as client:
            for what, below, count, work in _work(home, client):
                taken = Taken()
                for number in range(count):
                    with taken.one(started.pid):
                        await work(number)
                for row in taken.rows(what, below):
                    yield row


async def make(home: Path, port: int) -> None:
    """Make the home, with everything in it read and indexed. Facts come last: reading a
    conversation is quicker where nothing is known yet.
    """
    inventor = Inventor(7)
    memory = home / "workspace" / "memory"
    memory.mkdir(parents=True)
    for number, text in enumerate(inventor.texts(NOTES)):
        day = _FIRST + timedelta(days=number)
        (memory / f"{day.isoformat()}.md").write_text(f"# {day.isoformat()}\n\n- {text}\n", "utf-8")
    config = with_model(port) + _SETTINGS
    async with _running(home, config) as started, started.client() as client:
        for number in range(SESSIONS):
            lines = list(_lines(number, inventor.texts(MESSAGES)))
            await client.call("_agentd/sessions/import", key=f"chat:year-{number}", lines=lines)
    await _read(home, config)


async def _read(home: Path, config: str) -> None:
    """Have the conversations read for facts, and then the page of them."""
    async with _running(home, config) as started, started.client() as client:
        await _until(lambda: not unread(home))  # a start looks for what was imported
        facts = "".join(f"- {_sentence(number)}\n" for number in range(FACTS))
        (home / "workspace" / FACTS_PATH).write_text(f"# Facts\n\n{facts}", "utf-8")
        while (await client.call("_agentd/facts/list", limit=1))["total"] < FACTS:
            await asyncio.sleep(1)
        await client.call("_agentd/memory/index")


async def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(1)


def _work(
    home: Path, client: Client
) -> Iterator[tuple[str, float, int, Callable[[int], Awaitable[object]]]]:
    """What is done to the home, each with its goal in seconds, and how often."""

    async def add(_: int) -> None:
        for number in range(FACTS, FACTS + ADDED):
            await client.call("_agentd/facts/add", text=_sentence(number))

    async def indexed() -> Json:
        status = await client.call("_agentd/status")
        return dict(status["index"])

    async def take_in(part: int) -> None:
        first = FACTS + (1 + part) * ADDED
        since = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
        texts = map(_sentence, range(first, first + ADDED))
        facts = [{"text": text, "valid_from": since} for text in texts]
        before = (await indexed())["chunks"]
        done = await client.call("_agentd/facts/import", facts=facts)
        if done["added"] != ADDED:
            raise RuntimeError(done)
        while (now := await indexed())["chunks"] < before + ADDED or now["pending"]:
            await asyncio.sleep(0.05)  # they are found, by their vectors too

    async def forget(number: int) -> None:
        text = _sentence(number * 911 + 5)
        done = await client.call("_agentd/facts/forget", query=text)
        if len(done["forgotten"]) != 1:
            raise RuntimeError(done)

    yield "doctor", 3.0, 3, lambda _: client.call("_agentd/doctor")
    yield "backup", 3.0, 3, lambda n: client.call("_agentd/backup", file=f"{home}/{n}.tar.gz")
    yield f"adding {ADDED:,} facts one by one", 5.0, 1, add
    yield f"adding {ADDED:,} facts at once", 5.0, TOGETHER, take_in
    yield f"forgetting a fact among {FACTS:,}", 1.0, FORGOTTEN, forget
    yield (
        "deleting a session", 1.0, DELETED,
        lambda n: client.call("_agentd/sessions/delete", key=f"chat:year-{n * 97}"),
    )  # fmt: skip


@asynccontextmanager
async def _running(home: Path, config: str) -> AsyncIterator[Daemon]:
    started = Daemon(launch(home, config), home)
    try:
        await first_answer(started)
        await started.settled()
        yield started
    finally:
        stop(started.process)


def _lines(number: int, texts: list[str]) -> Iterator[Json]:
    at = datetime(2012, 1, 1, 9, tzinfo=UTC) + timedelta(days=2.5 * number)
    for place, text in enumerate(texts):
        role = "assistant" if place % 2 else "user"
        moment = (at + timedelta(minutes=place)).isoformat()
        yield {"role": role, "content": [{"type": "text", "text": text}], "at": moment}


def _sentence(number: int) -> str:
    return f"The user's contact Anna{number} works at Firm{number * 7 % 9973} since week {number}."


async def _made(home: Path) -> None:
    with model() as port:
        await make(home, port)


if __name__ == "__main__":
    asyncio.run(_made(Path(sys.argv[1])))
