"""How the concept graph grows: what its store takes in a second, and how long questions take.

Each concept has three facts, whose objects are any other concepts; each fact was said once. Then
comes a concept that very many facts are about, and at last all that has faded is swept. Beside what
the clock says stands the processor's time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import tempfile
from asyncio import create_task
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from statistics import quantiles
from time import perf_counter, process_time

from msgspec import Struct

from agentd.core.graph import Concept, ConceptContext, Record, Relation
from agentd.memory.graph.recall import Recollection
from agentd.storage.graph_store import SqliteGraph
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock
from agentd.zero.hashes import concept_hash, context_hash, episode_hash, fact_hash
from benchmarks.garbage import as_in_the_daemon
from benchmarks.row import Row

SIZES = {10_000: 10.0, 100_000: 50.0}  # concepts, and milliseconds at p95
DENSITY = 3
HUB_FACTS = 50_000
QUESTIONS = 200
HUB_QUESTIONS = 20
WARM_UP = 10
_BATCH = 5_000  # of one transaction
_LAST = 10_000
_NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
_PREDICATES = ("needs", "uses", "is_a", "belongs_to", "likes", "knows", "owns", "made")
_HEADS = ("red", "old", "north", "quick", "glass", "paper", "sea", "iron")
_TAILS = ("harbour", "engine", "garden", "letter", "theory", "market", "signal", "bridge")


class Filled(Struct, frozen=True):
    """Records that were inserted a second: on the clock, of the processor, and of it at the end."""

    clock: float
    processor: float
    last: float


async def rows() -> AsyncIterator[Row]:
    """Rates and times of each size, and what a hub costs."""
    with as_in_the_daemon():
        async for row in _measured():
            yield row


async def _measured() -> AsyncIterator[Row]:
    for size, goal in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            async with Database.open(Path(folder, "i.db"), INDEX, synchronous="NORMAL") as db:
                store = SqliteGraph(db)
                filled = await _fill(store, _records(size))
                for row in _rates(size, filled):
                    yield row
                async for row in _questions(store, size, goal):
                    yield row
                if size == min(SIZES):
                    async for row in _hub(store):
                        yield row
                    async for row in _swept(store):
                        yield row


async def _questions(store: SqliteGraph, size: int, goal: float) -> AsyncIterator[Row]:
    memory, chance = Recollection(store, FakeClock(_NOW)), Random(2)
    names = [_label(chance.randrange(size)) for _ in range(QUESTIONS)]

    async def find(name: str) -> int:
        text = f"FIND concept WHERE predicate = needs AND confidence > 0.5 FROM {name} DEPTH 2"
        return len((await memory.answer(text)).rows)

    async def far(name: str) -> int:
        return len((await memory.answer(f"FIND concept FROM {name} DEPTH 3 LIMIT 50")).rows)

    async def about(name: str) -> int:
        words = name.replace("-", " ")
        return len((await memory.about(f"What did we say of the {words} last week?")).rows)

    async def nothing(_: str) -> int:
        return len((await memory.about("Good morning, how did you sleep?")).rows)

    asked: tuple[tuple[str, Callable[[str], Awaitable[int]], float], ...] = (
        ("a question of depth 2", find, goal),
        ("a question of depth 3, 50 results", far, goal),
        ("what is known about a text", about, goal),
        ("the same for a text that names nothing", nothing, 2.0),
    )
    for what, ask, below in asked:
        taken, worked = await _timed(ask, names)
        yield Row(f"{what}, among {size:,} concepts", [taken], "ms at p95", below)
        yield Row("processor time of it", [worked], "ms at p95")


def _rates(size: int, filled: Filled) -> Iterator[Row]:
    what = f"records put into a graph of {size:,} concepts, {_BATCH:,} at a time"
    yield Row(what, [filled.clock], "/s", least=5_000)
    yield Row("the same by processor time", [filled.processor], "/s")
    yield Row(f"the last {_LAST:,} of them by processor time", [filled.last], "/s")


async def _hub(store: SqliteGraph) -> AsyncIterator[Row]:
    hub = (_record("user", _PREDICATES[n % 8], f"thing-{n}", n) for n in range(HUB_FACTS))
    await _fill(store, hub)
    memory = Recollection(store, FakeClock(_NOW))

    async def ask(name: str) -> int:
        return len((await memory.answer(f"FIND fact FROM {name} DEPTH 2")).rows)

    async def stated(_: str) -> int:
        return len((await memory.answer("FIND fact WHERE predicate = needs")).rows)

    asked = (("around a concept with", ask), ("of a predicate, beside a concept with", stated))
    for what, question in asked:
        taken, worked = await _timed(question, ["user"] * HUB_QUESTIONS)
        yield Row(f"facts {what} {HUB_FACTS:,} facts", [taken], "ms at p95")
        yield Row("processor time of it", [worked], "ms at p95")


async def _swept(store: SqliteGraph) -> AsyncIterator[Row]:
    """What a sweep costs, and how long a question waits that comes while it goes on."""
    begun, waited = perf_counter(), [0.0]

    async def ask() -> None:
        while True:
            asked = perf_counter()
            await store.predicates()
            waited.append(1000 * (perf_counter() - asked))

    asking = create_task(ask())
    swept = await store.sweep(_NOW + timedelta(days=100))
    taken = perf_counter() - begun
    asking.cancel()
    yield Row(f"sweeping {len(swept):,} episodes", [taken], "s")
    yield Row("the longest that a look waits meanwhile", [max(waited)], "ms")


async def _timed(ask: Callable[[str], Awaitable[int]], names: Sequence[str]) -> tuple[float, float]:
    """The milliseconds within which 95 of 100 are answered, on the clock and of the processor."""
    taken, worked = [], []
    for name in [*names[:WARM_UP], *names]:
        begun, cpu = perf_counter(), process_time()
        await ask(name)
        taken.append(1000 * (perf_counter() - begun))
        worked.append(1000 * (process_time() - cpu))
    return quantiles(taken[WARM_UP:], n=20)[-1], quantiles(worked[WARM_UP:], n=20)[-1]


async def _fill(store: SqliteGraph, records: Iterable[Record]) -> Filled:
    """Put records in, in transactions of five thousand."""
    waiting, count = iter(records), 0
    clock, processor = [], []
    while batch := list(islice(waiting, _BATCH)):
        begun, cpu = perf_counter(), process_time()
        await store.insert(batch)
        clock.append(perf_counter() - begun)
        processor.append(process_time() - cpu)
        count += len(batch)
    last = processor[-_LAST // _BATCH :]
    return Filled(count / sum(clock), count / sum(processor), _BATCH * len(last) / sum(last))


def _records(size: int) -> Iterator[Record]:
    chance = Random(1)
    for number in range(size * DENSITY):
        subject, target = _label(number // DENSITY), _label(chance.randrange(size))
        yield _record(subject, chance.choice(_PREDICATES), target, number)


def _record(subject: str, predicate: str, target: str, number: int) -> Record:
    """A statement as the compiler would make it of one sentence."""
    at = _NOW - timedelta(minutes=number % 10_000)
    confidence = 0.5 + number % 50 / 100
    context = ConceptContext(
        context_hash(at, "bench", "main", "", str(number)), at, "bench", "main", "", str(number)
    )
    fact = fact_hash(subject, predicate, target)
    ends = {
        label: Concept(concept_hash(label), label, confidence, at, at)
        for label in (subject, target)
    }
    relation = Relation(
        fact, episode_hash(fact, context.hash), context.hash, ends[subject].hash, predicate,
        ends[target].hash, confidence, at,
    )  # fmt: skip
    concepts = tuple(sorted(ends.values(), key=lambda concept: concept.hash))
    return Record(concepts, (context,), (relation,))


def _label(number: int) -> str:
    rest, head = divmod(number, len(_HEADS))
    rest, tail = divmod(rest, len(_TAILS))
    return f"{_HEADS[head]}-{_TAILS[tail]}-{rest}"
