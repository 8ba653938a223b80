"""What a night makes of what was said: promoted once, then swept, and kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.errors import StorageError
from agentd.core.evidence import Consolidated
from agentd.memory.graph.consolidation import MOST, Consolidation
from agentd.memory.graph.picture import FactHistory, histories
from agentd.storage.graph_store import SqliteGraph
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing.clock import FakeClock
from agentd.testing.graph_doubles import InMemoryGraph, MemoryGraphRecords
from agentd.zero import compiler
from agentd.zero.hashes import concept_hash, fact_hash
from agentd.zero.statements import CompilerInput, ContextMeta, SemanticTuple

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)
FACT = fact_hash("agent", "needs", "memory")
AGENT = [concept_hash("agent")]


class FullDisk(InMemoryGraph):
    """A store that refuses promotions while `is_full`."""

    is_full = False

    async def insert(self, records):
        if self.is_full:
            raise StorageError("full")
        return await super().insert(records)


class Brain:
    """A graph's tables, and what is kept beside them."""

    def __init__(self, store):
        self.clock = FakeClock(NOW)
        self.records = MemoryGraphRecords()
        self.store = store
        self.nights = Consolidation(store, self.records, self.clock)

    async def hear(self, *, age=0, confidence=0.6, thing="memory", session="", **meta):
        statement = SemanticTuple("agent", "needs", thing, confidence, meta.pop("denied", False))
        at = self.clock.now() - age * DAY
        where = ContextMeta(at, meta.get("source", "chat"), meta.get("scope", "main"), "", session)
        made = compiler.compile(CompilerInput((statement,), where))
        await self.store.insert([made.record])

    async def confidence(self):
        [edge] = await self.store.edges(AGENT, now=self.clock.now())
        return edge.confidence


async def history(store):
    return histories(await store.traces([FACT]))[FACT]


@pytest.fixture(params=["sqlite", "memory"])
async def brain(request, tmp_path):
    if request.param == "memory":
        yield Brain(InMemoryGraph())
        return
    async with Database.open(tmp_path / "state" / "index.db", INDEX) as db:
        yield Brain(SqliteGraph(db))


async def test_three_sayings_are_promoted_once_and_stay(brain):
    for age in range(3):
        await brain.hear(age=age)
    before = await brain.confidence()
    assert await brain.nights.run() == Consolidated(promoted=1, swept=0, at=NOW)
    assert await brain.confidence() == pytest.approx(before)
    for _ in range(5):
        brain.clock.jump(DAY)
        assert (await brain.nights.run()).promoted == 0
    assert await brain.confidence() == pytest.approx(before)
    brain.clock.jump(365 * DAY)
    assert (await brain.nights.run()).swept == 3
    assert await brain.confidence() == pytest.approx(before)
    [edge] = await brain.store.edges(AGENT)
    assert (edge.episodes, edge.newest) == (3, NOW)
    assert await history(brain.store) == FactHistory(3, 0, 3, NOW - 2 * DAY, NOW, stands=True)


async def test_the_result_is_remembered(brain):
    done = [await brain.nights.run()]
    brain.clock.jump(DAY)
    done.append(await brain.nights.run())
    assert await brain.store.consolidations(9) == done[::-1]


async def test_two_are_not_enough_nor_those_that_have_faded(brain):
    for age in (0, 1, 19):  # 0.6 is below 0.1 after 18.1 days
        await brain.hear(age=age)
    assert (await brain.nights.run()).promoted == 0


class Watched(InMemoryGraph):
    """A store that knows in which order it was used."""

    def __init__(self):
        super().__init__()
        self.calls = []

    async def insert(self, records):
        self.calls.append("insert")
        return await super().insert(records)

    async def promotable(self, now):
        self.calls.append("promotable")
        return await super().promotable(now)

    async def sweep(self, now):
        self.calls.append("sweep")
        return await super().sweep(now)

    async def note(self, consolidated):
        self.calls.append("note")
        await super().note(consolidated)


async def test_sweeping_comes_after_promoting():
    brain = Brain(Watched())
    for age in (0, 1, 2):
        await brain.hear(age=age)
    await brain.hear(age=200, thing="rest")
    brain.store.calls.clear()
    assert await brain.nights.run() == Consolidated(1, 1, NOW)
    assert brain.store.calls == ["promotable", "insert", "sweep", "note"]
    assert await brain.store.named(["rest"]) == []


async def test_sayings_that_come_later_are_promoted_by_themselves(brain):
    for n in range(3):
        await brain.hear(session=f"first {n}")
    await brain.nights.run()
    first = await brain.confidence()
    await brain.hear(session="one more")
    assert (await brain.nights.run()).promoted == 0
    await brain.hear(session="and two")
    await brain.hear(session="and three")
    assert (await brain.nights.run()).promoted == 1
    assert (await history(brain.store)).said == 6
    assert await brain.confidence() > first


async def test_facts_stand_and_are_promoted_with_what_was_said_again(brain):
    await brain.hear(age=40, source="facts")
    await brain.hear(age=1, source="said")
    assert (await brain.nights.run()).promoted == 0
    await brain.hear(source="said")
    sure = await brain.confidence()
    assert (await brain.nights.run()).promoted == 1
    brain.clock.jump(365 * DAY)
    assert (await brain.nights.run()).swept == 2
    assert await brain.confidence() == pytest.approx(sure)
    assert (await history(brain.store)).promoted == 3


async def test_what_was_said_thousands_of_times_is_promoted_in_portions(brain):
    statement = SemanticTuple("agent", "needs", "memory", 0.2)
    metas = [ContextMeta(NOW, "chat", "main", "", f"{n}") for n in range(2 * MOST + 1)]
    said = [compiler.compile(CompilerInput((statement,), meta)).record for meta in metas]
    await brain.store.insert(said)
    before = await brain.confidence()
    assert (await brain.nights.run()).promoted == 3
    assert await brain.confidence() == pytest.approx(before)
    assert (await brain.nights.run()).promoted == 0
    [edge] = await brain.store.edges(AGENT)
    assert edge.episodes == len(said)


async def test_scopes_are_promoted_apart(brain):
    for n in range(3):
        await brain.hear(session=f"{n}", scope="main")
        await brain.hear(session=f"{n}", scope="chat:a", confidence=0.3)
        await brain.hear(session=f"{n}", scope=f"chat:b{n}")
    assert (await brain.nights.run()).promoted == 2
    brain.clock.jump(365 * DAY)
    await brain.nights.run()
    now = brain.clock.now()
    [edge] = await brain.store.edges(AGENT, scopes=["chat:a"], now=now)
    assert edge.confidence == pytest.approx(1 - 0.7**3)
    assert await brain.store.edges(AGENT, scopes=["chat:b1"], now=now) == []


async def test_denials_are_promoted_like_what_they_deny(brain):
    for n in range(3):
        await brain.hear(session=f"{n}")
        await brain.hear(session=f"not {n}", denied=True)
    assert (await brain.nights.run()).promoted == 2
    brain.clock.jump(365 * DAY)
    await brain.nights.run()
    sure = 1 - 0.4**3
    assert await brain.confidence() == pytest.approx(sure * (1 - sure))


async def test_a_promotion_is_kept_before_the_tables_say_it():
    store = FullDisk()
    brain = Brain(store)
    for n in range(3):
        await brain.hear(session=f"{n}")
    store.is_full = True
    with pytest.raises(StorageError):
        await brain.nights.run()
    assert [one.teller for one in await brain.records.kept_episodes()] == [""]


async def test_a_clock_that_goes_back_loses_and_doubles_nothing(brain):
    for n in range(3):
        await brain.hear(session=f"{n}")
    await brain.nights.run()
    brain.clock.jump(-400 * DAY)
    assert (await brain.nights.run()).promoted == 0
    for n in range(3):
        await brain.hear(session=f"back {n}")
    assert (await brain.nights.run()).promoted == 1
    brain.clock.jump(400 * DAY)
    assert (await brain.nights.run()).promoted == 0
    assert (await history(brain.store)).said == 6


async def test_the_same_evidence_is_promoted_under_the_same_name():
    names = set()
    for _ in range(2):
        brain = Brain(InMemoryGraph())
        for n in range(3):
            await brain.hear(session=f"{n}")
        brain.clock.jump(DAY * len(names))
        await brain.nights.run()
        names.update(brain.records.episodes)
    assert len(names) == 1
