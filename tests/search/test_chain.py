"""What the index and the facts know together of the embedders that both ask."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from agentd.core.errors import EmbedderFault
from agentd.core.fact import Category, Fact, FactSource, FactWrite
from agentd.core.search import OWNER, SearchQuery
from agentd.memory.index.search.chain import FEW
from agentd.memory.index.search.fact_search import LiveFacts
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import FIRST, patient
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import HashEmbedder

NOW = datetime(2026, 11, 21, tzinfo=UTC)


class Counting(HashEmbedder):
    """Counts how often it is asked, also while it fails."""

    calls = 0

    async def embed(self, texts, *, query=False):
        self.calls += 1
        if self.broken:
            raise EmbedderFault("it is down", cure="wait")
        return await super().embed(texts, query=query)


@pytest.fixture
async def both(tmp_path, store, clock, chunk):
    """An embedder, and an index of a note and of a fact that search with it."""
    embedder = Counting()
    shared = patient([embedder], clock)
    fact = Fact("f", "The user drinks tea.", Category.PERSONAL, FactSource.EXPLICIT, 0.9, NOW, NOW)
    async with Database.open(tmp_path / "state.db", STATE) as db:
        await SqliteFacts(db).write(FactWrite((fact,)))
        async with (
            LiveIndex.open(store, clock, shared) as index,
            LiveFacts.open(SqliteFacts(db), shared, clock) as facts,
        ):
            await index.replace("a.md", "d", [chunk("a cup of tea", "a.md")])
            yield embedder, index, facts


async def test_an_embedder_that_failed_one_of_them_is_not_asked_by_the_other(both, clock):
    embedder, index, facts = both
    embedder.broken = True
    assert [hit.fact.id for hit in await facts.find("tea", 5)] == ["f"]
    asked = embedder.calls
    found = await index.search(SearchQuery("tea", limit=5), OWNER)
    assert (len(found.hits), found.reason) == (1, "embedder_down")
    assert embedder.calls == asked
    (told,) = dict.fromkeys((*index.problems(), *facts.problems()))
    assert told.code == "embedder_down"
    embedder.broken = False
    await clock.advance(10)
    assert (await index.search(SearchQuery("tea", limit=5), OWNER)).reason == ""
    assert (index.problems(), facts.problems()) == ((), ())


async def test_the_state_of_the_index_names_what_searches_do_without(store, clock, chunk):
    best, quick = Counting(32), HashEmbedder()
    async with LiveIndex.open(store, clock, patient([best, quick], clock)) as index:
        assert (await index.state()).reason == ""
        await index.replace("a.md", "d", [chunk("a cup of tea", "a.md")])
        assert (await index.state()).reason == "vectors_missing"
        best.broken = True
        await index.settle()
        state = await index.state()
        assert (state.reason, state.embedder) == ("embedder_down", quick.model)
        best.broken = False
        await clock.advance(10)
        await index.settle()
        assert (await index.state()).reason == ""


async def test_a_stand_in_is_given_texts_only_while_all_before_it_fail(store, clock, chunk):
    best, between, quick = Counting(32), Counting(48), HashEmbedder()
    many = [chunk(f"tea number {n}", line=3 * n + 1) for n in range(FEW + 100)]
    shared = patient([best, between, quick], clock)
    async with (
        LiveIndex.open(store, clock, shared) as index,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(index.run())
        await index.replace("a.md", "d", many)
        while (await index.state()).vectors or (await index.state()).state != "ready":
            await asyncio.sleep(0)
        assert between.calls == 0
        best.broken = True
        found = await index.search(SearchQuery("tea", limit=5), OWNER)
        assert found.reason == "embedder_down"
        while (await index.state()).embedder != between.model:
            await asyncio.sleep(0)
        assert len([text for text in between.texts if text.startswith("tea number")]) > 90
        best.broken = False
        await clock.advance(400)
        assert (await index.search(SearchQuery("tea", limit=5), OWNER)).reason == ""
        given = len(between.texts)
        await index.replace("b.md", "d", many[:50])
        await index.settle()
        assert (len(between.texts), (await index.state()).embedder) == (given, best.model)
        running.cancel()


async def test_a_stand_in_stops_when_the_one_before_it_is_back(store, clock, chunk):
    class Held(Counting):
        """Holds the first texts until it may."""

        def __init__(self):
            super().__init__(48)
            self.asked, self.may = asyncio.Event(), asyncio.Event()

        async def embed(self, texts, *, query=False):
            if not query:
                self.asked.set()
                await self.may.wait()
            return await super().embed(texts, query=query)

    best, between = Counting(32), Held()
    async with (
        LiveIndex.open(store, clock, patient([best, between, HashEmbedder()], clock)) as index,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(index.run())
        rows = [chunk(f"tea number {n}", line=3 * n + 1) for n in range(FEW + 100)]
        await index.replace("a.md", "d", rows)
        while (await index.state()).vectors:
            await asyncio.sleep(0)
        best.broken = True
        await index.search(SearchQuery("tea", limit=5), OWNER)
        await between.asked.wait()
        best.broken = False
        await clock.advance(400)
        assert (await index.search(SearchQuery("tea", limit=5), OWNER)).reason == ""
        between.may.set()
        for _ in range(100):
            await asyncio.sleep(0.001)
        stored = [text for text in between.texts if text != "tea"]  # the question, if it was asked
        assert len(stored) == FIRST  # what it was at
        running.cancel()
