"""The first search after a start: with what the index had in memory in its file, and without.

`python -m benchmarks.first_search INDEX` measures one start on an index as JSON. With FULL=1 a
million pieces are measured, too, which takes minutes. The vectors are as those of `scale`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from statistics import quantiles
from time import perf_counter, process_time

import numpy as np
from msgspec.structs import replace

from agentd.core.search import OWNER, SearchOptions
from agentd.memory.index.search.audiences import Mirrors
from agentd.memory.index.search.entries import entry
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from benchmarks.household import folder
from benchmarks.invented import Inventor
from benchmarks.process import memory_mb
from benchmarks.row import Row
from benchmarks.scale import Wide

GOALS = {10_000: 0.3, 100_000: 1.0, 1_000_000: 5.0}
STARTS = 5
_MODEL = "wide"
_NUMBERS = 768  # of a vector of the default model
_BATCH = 10_000
_TICK = 0.002

Figures = dict[str, float]


async def rows() -> AsyncIterator[Row]:
    """Each size by the clock and by the processor, and what a start without the file takes."""
    for size, goal in GOALS.items():
        if size > 100_000 and not os.environ.get("FULL"):
            continue
        with folder() as home:
            await build(home / "index.db", size)
            without = await _in_a_process(home / "index.db")
            found = [await _in_a_process(home / "index.db") for _ in range(STARTS)]
        what = f"first search among {size:,} pieces"
        yield Row(what, [one["seconds"] for one in found], "s", below=goal)
        yield Row("the same, processor", [one["processor"] for one in found], "s")
        yield Row("the same without the file, processor", [without["processor"]], "s")
        yield Row("writing the file, processor", [without["saving"]], "s")
        yield Row("loop lag meanwhile, p99", [one["lag"] for one in found], "ms", below=20)
        yield Row("memory of the process then (PSS)", [one["memory"] for one in found], "MB")


async def build(path: Path, size: int) -> None:
    """An index of so many pieces, all with vectors."""
    wide, inventor = Wide(_NUMBERS), Inventor()
    async with Database.open(path, INDEX, synchronous="NORMAL") as db:
        store = SqliteChunks(db)
        for chunks in inventor.chunks(size, _BATCH):
            vectors = await wide.embed([chunk.text for chunk in chunks])
            entries = [entry(replace(chunk, scope="")) for chunk in chunks]
            files = defaultdict(list)
            for one in entries:
                files[one.chunk.path].append(one)
            for name, own in files.items():
                await store.extend(name, "d", own)
            halves = (vector.astype("<f2").tobytes() for vector in vectors)
            digests = (one.digest for one in entries)
            await store.put_vectors(_MODEL, dict(zip(digests, halves, strict=True)))


async def measure(path: Path) -> Figures:
    """One start: from the open store to the answer."""
    options = SearchOptions(today=date(2025, 11, 5))
    vector = np.random.default_rng(1).normal(size=_NUMBERS).astype("<f4").tobytes()
    late: list[float] = []

    async def tick() -> None:
        while True:
            before = perf_counter()
            await asyncio.sleep(_TICK)
            late.append(1000 * (perf_counter() - before - _TICK))

    async with (
        Database.open(path, INDEX, synchronous="NORMAL") as db,
        Mirrors.open(SqliteChunks(db), [_MODEL], path.with_suffix(".arrays")) as mirrors,
    ):
        begun, cpu = perf_counter(), process_time()
        ticking = asyncio.create_task(tick())
        await mirrors.search(OWNER, ["where is the harbour bridge"], [vector], _MODEL, options)
        seconds, processor = perf_counter() - begun, process_time() - cpu
        ticking.cancel()
        memory = memory_mb(os.getpid())[0]
        cpu = process_time()
        await mirrors.save()
        saving = process_time() - cpu
    lag = quantiles(late, n=100)[98] if len(late) > 1 else 0.0
    return {
        "seconds": seconds, "processor": processor, "lag": lag, "memory": memory, "saving": saving
    }  # fmt: skip


async def _in_a_process(path: Path) -> Figures:
    """Measure in a process of its own, on one core as in the daemon."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.first_search", str(path),
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    figures: Figures = json.loads(out.splitlines()[-1])
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1])))))
