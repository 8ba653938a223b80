"""The text of the concept graph: how fast it is written, run and read, fed with facts and freed of one.

Facts are of people with a few things each. Beside what the clock says stands the processor's time, which
other work on the machine disturbs less.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Self

from agentd.clock import SystemClock
from agentd.domain.concept import Record
from agentd.domain.erasure import Needles
from agentd.domain.fact import Category, Fact, FactSource, FactStatus, Triple
from agentd.facts.telltale import needles_of
from agentd.graph.compiler import record_of
from agentd.graph.decompiler import decompile
from agentd.graph.delta import merged
from agentd.graph.emitter import emit
from agentd.graph.files import FOLDER
from agentd.graph.keeper import GraphKeeper
from agentd.graph.pieces import read_pieces
from agentd.graph.portions import TOGETHER
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple
from agentd.graph.zero import execute, parse
from agentd.storage.graph import SqliteGraph
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.workspace.files import Files
from agentd.workspace.settings import WorkspaceSettings
from benchmarks.garbage import as_in_the_daemon
from benchmarks.row import Row

NODES = 10_000
FACTS = 10_000
TIMES = 5
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
_CONSONANTS, _VOWELS, _SYLLABLES = "bdfgklmnprstvz", "aeiou", 3
_RELATIONS = ("home", "employer", "favourite food", "hobby", "birthday")


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds on the clock and of the processor."""

    clock: float
    processor: float


async def rows() -> AsyncIterator[Row]:
    """What a graph costs, and what the text of many facts does."""
    with as_in_the_daemon():
        for row in _one_graph():
            yield row
        for row in _languages():
            yield row
        async for row in _kept():
            yield row


def _one_graph() -> Iterator[Row]:
    count = NODES // 14
    while len(parse(text := emit(_record(count))).nodes) > NODES:
        count -= 1
    nodes = len(parse(text).nodes)
    yield from _both(
        f"a graph of {nodes:,} nodes parsed and run", lambda: execute(parse(text)), 1.0
    )
    yield from _both("the same checked as a memory", lambda: decompile(parse(text)))


def _languages() -> Iterator[Row]:
    sources = [_source(number) for number in range(2_000)]
    records = [record_of(source) for source in sources]
    some = [merged(records[at : at + TOGETHER]) for at in range(0, len(records), TOGETHER)]
    texts = [emit(record) for record in some]
    whole = "".join(texts)
    for what, work in (
        ("facts compiled to records", lambda: [record_of(source) for source in sources]),
        ("facts written as text", lambda: [emit(record) for record in some]),
        ("facts read from text", lambda: read_pieces(whole)),
    ):
        taken = _timed(work)
        yield Row(what, [len(records) / taken.clock], "/s")
        yield Row("the same by processor time", [len(records) / taken.processor], "/s")
    yield Row("text of a fact", [len(whole.encode()) / len(records)], "B")


async def _kept() -> AsyncIterator[Row]:
    """What feeding and forgetting take, with files and tables."""
    async with _Home() as home:
        fed = await home.timed()
        yield Row(f"{FACTS:,} facts fed to the graph", [fed.clock], "s", below=30)
        yield Row("the same by processor time", [fed.processor], "s")
        yield Row("the text of them", [home.size() / 2**20], "MiB")
        home.facts.append(_fact(FACTS))
        one = await home.timed()
        yield Row(f"one more among {FACTS:,}", [1000 * one.clock], "ms")
        forgotten = home.facts[FACTS // 2]
        home.facts[FACTS // 2] = replace(
            forgotten, status=FactStatus.FORGOTTEN, text="", triple=None
        )
        needles = needles_of(forgotten, (), home.facts)
        gone = await home.timed(needles)
        yield Row(f"one forgotten among {FACTS:,}", [gone.clock], "s", below=5)
        yield Row("the same by processor time", [gone.processor], "s")
        again = await home.started_anew()
        yield Row(f"tables of {FACTS:,} facts made from the text", [again.clock], "s", below=60)
        yield Row("the same by processor time", [again.processor], "s")


class _Home:
    """A workspace and an index in a folder of their own, and the keeper of their graph."""

    def __init__(self) -> None:
        self.facts = [_fact(number) for number in range(FACTS)]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        folder = Path(self._stack.enter_context(TemporaryDirectory()))
        self._root = folder / "workspace"
        (self._root / FOLDER).mkdir(parents=True)
        clock = SystemClock("UTC")
        self._files = Files(self._root, WorkspaceSettings(), clock, {}, None)
        opening = Database.open(folder / "index.db", INDEX, synchronous="NORMAL")
        self._db = await self._stack.enter_async_context(opening)
        self._clock = clock
        self._begin()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def _begin(self) -> None:
        store, notes = SqliteGraph(self._db), SqliteChunks(self._db)
        self._keeper = GraphKeeper(self._files, store, notes, self._clock, self._all)
        self._notes = notes

    async def _all(self) -> tuple[Fact, ...]:
        return tuple(self.facts)

    async def timed(self, needles: Needles | None = None) -> Taken:
        """What it takes to be level with the facts, and to forget."""
        begun, cpu = perf_counter(), process_time()
        self._keeper.touch()
        if needles is None:
            await self._keeper.level()
        else:
            assert await self._keeper.erase(needles)
        return Taken(perf_counter() - begun, process_time() - cpu)

    async def started_anew(self) -> Taken:
        """What it takes when nobody knows which text the tables say."""
        self._begin()
        await self._notes.set_meta("graph", "")
        return await self.timed()

    def size(self) -> int:
        """Bytes of the text."""
        return sum(path.stat().st_size for path in (self._root / FOLDER).glob("*.0"))


def _both(what: str, work: Callable[[], object], below: float | None = None) -> Iterator[Row]:
    taken = _timed(work)
    yield Row(what, [taken.clock], "s", below=below)
    yield Row("the same by processor time", [taken.processor], "s")


def _timed(work: Callable[[], object]) -> Taken:
    """The median of several times."""
    clock, processor = [], []
    for _ in range(TIMES):
        begun, cpu = perf_counter(), process_time()
        work()
        clock.append(perf_counter() - begun)
        processor.append(process_time() - cpu)
    return Taken(sorted(clock)[TIMES // 2], sorted(processor)[TIMES // 2])


def _record(facts: int) -> Record:
    """Statements of one context."""
    tuples = tuple(_statement(number) for number in range(facts))
    return record_of(CompilerInput(tuples, ContextMeta(NOW, "bench", "main")))


def _source(number: int) -> CompilerInput:
    at = NOW + timedelta(minutes=number)
    return CompilerInput((_statement(number),), ContextMeta(at, "facts", "main"))


def _statement(number: int) -> SemanticTuple:
    triple = _triple(number)
    return SemanticTuple(
        triple.subject, triple.relation, triple.value, 0.9, refs=(f"f{number:07d}",)
    )


def _triple(number: int) -> Triple:
    person, relation = divmod(number, len(_RELATIONS))
    return Triple(_name(person), _RELATIONS[relation], _name(1_000_003 + 7 * (number % 997)))


def _name(number: int) -> str:
    """A name of its own for each number."""
    letters = []
    while number or len(letters) < _SYLLABLES:
        number, syllable = divmod(number, len(_CONSONANTS) * len(_VOWELS))
        consonant, vowel = divmod(syllable, len(_VOWELS))
        letters.append(_CONSONANTS[consonant] + _VOWELS[vowel])
    return "".join(letters).capitalize()


def _fact(number: int) -> Fact:
    triple, at = _triple(number), NOW + timedelta(minutes=number)
    text = f"The {triple.relation} of {triple.subject} is {triple.value}."
    return Fact(
        f"f{number:07d}", text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, at, at, triple=triple
    )


async def _main() -> None:
    async for row in rows():
        print(row.as_markdown(), flush=True)


if __name__ == "__main__":
    asyncio.run(_main())
