"""What it takes to index a large workspace, to look at it again, and what else gets done
meanwhile.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from agentd.app.daemon import tune_interpreter
from agentd.core.clock import SystemClock
from agentd.core.search import OWNER, Chunk, Source
from agentd.memory.index.embedding.lazy_static import packaged_static
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.search.audiences import Mirrors
from agentd.memory.index.search.entries import entry
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import patient
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import MemorySessions
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings
from benchmarks.row import Row

_FILES = 10_000
_CHUNKS = 20_000
_LONG = 2_000  # chunks as long as the longest that a way of cutting makes
_BATCH = 2_000
_STARTS = 5
_TICK = 0.005
_WORDS = [f"{head}{middle}{tail}" for head in "bdfgklmnprstvz" for middle in ("a", "ei", "o", "u")
          for tail in ("ben", "dra", "fel", "gim", "kot", "lum", "nas", "pir", "rov", "tek", "zu")
          ]  # fmt: skip
_COMMONNESS = [1 / (rank + 1) for rank in range(len(_WORDS))]  # as in any language


async def rows() -> AsyncIterator[Row]:
    """Durable chunks a second; then a workspace of 10,000 files from nothing, and unchanged."""
    tune_interpreter()  # as the daemon does
    with tempfile.TemporaryDirectory() as folder:
        async with Database.open(Path(folder, "rows.db"), INDEX, synchronous="NORMAL") as db:
            prepared, stored = await _durable(SqliteChunks(db), _CHUNKS, length=30)
            loaded, lags = await _load(SqliteChunks(db), _CHUNKS)
        yield Row("chunks cut into words", [prepared], "/s")
        yield Row("chunks stored, findable by word", [stored], "/s", least=20_000)
        yield Row("chunks loaded for the first search", loaded, "/s", least=15_000)
        yield Row("loop lag meanwhile, p99", [quantiles(lags, n=100)[98]], "ms", below=20)
        async with Database.open(Path(folder, "long.db"), INDEX, synchronous="NORMAL") as db:
            await _durable(SqliteChunks(db), _LONG, length=700)
            loaded, lags = await _load(SqliteChunks(db), _LONG)
        yield Row("chunks of 700 words loaded for the first search", loaded, "/s")
        yield Row("loop lag meanwhile, p99", [quantiles(lags, n=100)[98]], "ms", below=20)
        async with _workspace(Path(folder)) as (indexer, again, index):
            seconds, lags = await _lag(indexer.sync())
            chunks = (await index.state()).chunks
            yield Row(f"{_FILES} new files, {chunks} chunks: to index them", [seconds], "s")
            yield Row("loop lag meanwhile, p99", [quantiles(lags, n=100)[98]], "ms", below=20)
            seconds, _ = await _lag(indexer.sync())
            yield Row(f"{_FILES} unchanged files: to look at them", [seconds], "s", below=1)
            seconds, _ = await _lag(again.sync())
            yield Row("the same after a restart", [seconds], "s", below=1)
            seconds, lags = await _lag(index.settle())
            yield Row("static vectors", [chunks / seconds], "/s", least=1000)
            yield Row("loop lag meanwhile, p99", [quantiles(lags, n=100)[98]], "ms", below=20)


async def _durable(store: SqliteChunks, count: int, length: int) -> tuple[float, float]:
    chunks = [_chunk(f"memory/{number // 10}.md", number, length) for number in range(count)]
    begun = perf_counter()
    entries = [entry(chunk) for chunk in chunks]
    cut = perf_counter()
    for start in range(0, count, _BATCH):
        await store.extend("notes.md", str(start), entries[start : start + _BATCH])
    return count / (cut - begun), count / (perf_counter() - cut)


async def _load(store: SqliteChunks, count: int) -> tuple[list[float], Sequence[float]]:
    rates, lags = [], []
    for _ in range(_STARTS):
        async with Mirrors.open(store, ()) as mirrors:
            await mirrors.run(importlib.import_module, "agentd.memory.index.search.in_memory")
            seconds, late = await _lag(mirrors.ready(OWNER))
            rates.append(count / seconds)
            lags += late
    return rates, lags


@asynccontextmanager
async def _workspace(folder: Path) -> AsyncIterator[tuple[Indexer, Indexer, LiveIndex]]:
    for number in range(_FILES):
        note = folder / "workspace" / f"{number % 100}" / f"{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"- {_sentence(random.Random(f'{number} {line}'))}" for line in range(3)]
        note.write_text("\n".join(lines) + "\n", encoding="utf-8")
    clock = SystemClock(UTC)
    files = Files(folder / "workspace", WorkspaceSettings(), clock, {}, folder / "versions")
    async with (
        Database.open(folder / "index.db", INDEX, synchronous="NORMAL") as db,
        LiveIndex.open(SqliteChunks(db), clock, patient([packaged_static()], clock)) as index,
    ):
        sessions = MemorySessions(clock)
        one, other = (Indexer(index, files, sessions, clock) for _ in range(2))
        yield one, other, index


async def _lag(work) -> tuple[float, Sequence[float]]:
    """How many seconds the work took, and by how many milliseconds a timer was late meanwhile."""
    lags: list[float] = []

    async def tick() -> None:
        while True:
            before = perf_counter()
            await asyncio.sleep(_TICK)
            lags.append((perf_counter() - before - _TICK) * 1000)

    begun = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        ticking = tasks.create_task(tick())
        await work
        ticking.cancel()
    return perf_counter() - begun, lags


def _chunk(path: str, number: int, length: int) -> Chunk:
    text = _sentence(random.Random(f"{path} {number}"), length)
    return Chunk(path, number, number, text, Source.NOTES, scope="main")


def _sentence(chance: random.Random, length: int = 30) -> str:
    return " ".join(chance.choices(_WORDS, _COMMONNESS, k=length))
