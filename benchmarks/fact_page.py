"""How long the rows of facts take to be made from their page, and one fact to be learnt.

`python -m benchmarks.fact_page` prints one process's figures as JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from agentd.clock import SystemClock
from agentd.domain.fact import (
    Category,
    ErasureReport,
    Fact,
    FactSource,
    Provenance,
    Statement,
    Triple,
)
from agentd.domain.turn import MAIN
from agentd.domain.workspace import FACTS_PATH
from agentd.facts.book import FactBook
from agentd.facts.page import Page
from agentd.search.facts import LiveFacts
from agentd.storage.facts import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.workspace.files import Files
from agentd.workspace.settings import WorkspaceSettings
from benchmarks.row import Row

USUAL = 1_000
MANY = 100_000
NOW = datetime(2026, 11, 22, tzinfo=UTC)

Figures = dict[str, float]


class _Nowhere:
    """Nothing is forgotten here."""

    async def begin(self, facts: object) -> None:
        raise AssertionError(facts)

    async def carry_out(self) -> ErasureReport:
        return ErasureReport({})


async def rows() -> AsyncIterator[Row]:
    """The lines that have a goal."""
    found = await _in_a_process()
    yield Row(f"rows of {MANY:,} facts made from their page", [found["rebuild"]], "s", below=60)
    yield Row(f"the page of {MANY:,} facts taken in anew", [found["first"]], "s")
    yield Row(f"one fact learnt among {USUAL:,}", [1000 * found["learn usual"]], "ms")
    yield Row(f"one fact learnt among {MANY:,}", [found["learn"]], "s")


async def measure() -> Figures:
    """All figures, in seconds."""
    usual, many = await _measured(USUAL), await _measured(MANY)
    return {**many, "learn usual": usual["learn"]}


async def _measured(count: int) -> Figures:
    clock, numbers = SystemClock("UTC"), itertools.count()
    with TemporaryDirectory() as folder:
        root = Path(folder) / "ws"
        (root / "memory").mkdir(parents=True)
        facts = [_fact(number) for number in range(count)]
        (root / FACTS_PATH).write_text(Page().edited(facts).render(), encoding="utf-8")
        files = Files(root, WorkspaceSettings(), clock, {}, root.parent / "versions")
        async with Database.open(Path(folder) / "state.db", STATE) as db:
            store = SqliteFacts(db)
            async with LiveFacts.open(store, [], clock) as index:
                book = FactBook(
                    store,
                    index,
                    files,
                    clock,
                    new_id=lambda: f"n{next(numbers):07d}",
                    key=bytes(32),
                    forgetting=_Nowhere(),
                )
                start = perf_counter()
                await book.sync()
                first = perf_counter()
                assert await book.rebuild() == count
                rebuilt = perf_counter()
                said = "The user's boat is called Rasmus."
                await book.learn([Statement(said, Category.PERSONAL, FactSource.EXPLICIT, NOW)])
                learnt = perf_counter()
    return {"first": first - start, "rebuild": rebuilt - first, "learn": learnt - rebuilt}


def _fact(number: int) -> Fact:
    friend = f"friend {number}"
    return Fact(
        f"f{number:07d}",
        f"The user's {friend} likes tea with cake number {number % 97} on Sundays.",
        Category.PERSONAL,
        FactSource.EXTRACTED,
        0.6,
        NOW,
        NOW,
        origin=Provenance(MAIN, number),
        triple=Triple("user", friend, f"tea {number}"),
    )


async def _in_a_process() -> Figures:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.fact_page", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    figures: Figures = json.loads(out.splitlines()[-1])  # behind what was logged
    return figures


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
