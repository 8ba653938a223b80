"""The graph made from facts: how fast, how fast it follows a change and a forgetting, and for how
long others wait for the event loop meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from agentd.core.clock import SystemClock
from agentd.core.erasure import Erasure
from agentd.core.fact import Category, Evidence, Fact, FactSource, Triple
from agentd.core.turn import SessionKey
from agentd.memory.graph.earlier_text import EarlierText
from agentd.memory.graph.keeper import GraphKeeper
from agentd.memory.graph.text import GraphText
from agentd.storage.graph_records import SqliteGraphRecords
from agentd.storage.graph_store import SqliteGraph
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.sqlite import Database
from agentd.workspace.files import Files
from agentd.workspace.logfiles import LogFiles
from agentd.workspace.workspace_settings import WorkspaceSettings
from benchmarks.garbage import as_in_the_daemon
from benchmarks.row import Row

FACTS = 10_000
DAYS = 400  # over which they were said
_NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
_TICK = 0.001


class Known:
    """Facts about the user and some hundred people."""

    def __init__(self) -> None:
        self.all = [_fact(number) for number in range(FACTS)]

    async def facts(self) -> tuple[Fact, ...]:
        """All of them."""
        return tuple(self.all)

    async def evidence(self, fact_ids: Sequence[str]) -> dict[str, list[Evidence]]:
        """One piece for each, two for every tenth."""
        return {one: _evidence(int(one[1:])) for one in fact_ids}


async def rows() -> AsyncIterator[Row]:
    """Seconds by the clock, and the longest stall in milliseconds."""
    with as_in_the_daemon():
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            db = await stack.enter_async_context(Database.open(folder / "state.db", STATE))
            index = await stack.enter_async_context(
                Database.open(folder / "index.db", INDEX, synchronous="NORMAL")
            )
            async for row in _measured(folder, db, index):
                yield row


async def _measured(folder: Path, db: Database, index: Database) -> AsyncIterator[Row]:
    workspace, known = folder / "workspace", Known()
    (workspace / "memory").mkdir(parents=True)
    clock, files = SystemClock("UTC"), LogFiles(workspace)
    store, records = SqliteGraph(index), SqliteGraphRecords(db)
    notes = Files(workspace, WorkspaceSettings(), clock, {}, folder / "versions")
    text = GraphText(files, store, SqliteChunks(index))
    earlier = EarlierText(notes, files, records, clock)
    keeper = GraphKeeper(notes, store, records, known, text, earlier, clock)
    yield await _timed(f"graph: {FACTS:,} facts fed to empty tables", keeper.level(), 30)
    yield await _timed("graph: their text written", keeper.write(), 60)
    known.all.append(_fact(FACTS))
    keeper.touch()
    yield await _timed("graph: one fact more", keeper.level(), 2)
    yield await _timed("graph: its day of the text", keeper.write(), 2)
    known.all[17] = Fact.tombstone("f17", _NOW)
    keeper.touch()
    yield await _timed("graph: one forgotten", keeper.erase(Erasure(spans=("value 17",))), 5)
    yield await _timed("graph: consolidated", keeper.consolidate(), 10)
    for row in STALLS:
        yield row


STALLS: list[Row] = []


async def _timed(what: str, work: Awaitable[object], most: float) -> Row:
    """The seconds that it takes; the longest time in which nothing else ran is noted besides."""
    stall, is_done = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal stall
        while not is_done.is_set():
            began = perf_counter()
            await asyncio.sleep(_TICK)
            stall = max(stall, perf_counter() - began - _TICK)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(10 * _TICK)
    began = perf_counter()
    await work
    seconds = perf_counter() - began
    is_done.set()
    await watching
    STALLS.append(Row(f"{what}: longest stall", [1e3 * stall], "ms", below=100))
    return Row(what, [seconds], "s", below=most)


def _fact(number: int) -> Fact:
    subject = "user" if number % 3 == 0 else f"person {number % 211}"
    triple = Triple(subject, f"relation {number % 97}", f"value {number}")
    at = _NOW - timedelta(days=number % DAYS)
    text = f"{triple.subject} {triple.relation} {triple.value}"
    source = FactSource.EXTRACTED
    return Fact(f"f{number}", text, Category.PERSONAL, source, 0.6, at, at, triple=triple)


def _evidence(number: int) -> list[Evidence]:
    at = _NOW - timedelta(days=number % DAYS)
    times = [at, at + timedelta(hours=5)] if number % 10 == 0 else [at]
    return [Evidence(one, SessionKey("main"), number) for one in times]
