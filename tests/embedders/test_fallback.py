"""Services that stand in for one another: over real sockets, below a real index."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from pydantic import ValidationError

from agentd.core.search import OWNER, Chunk, SearchQuery, Source
from agentd.memory.index.embedding.assembly import open_embedders
from agentd.memory.index.embedding.embedding_settings import (
    EmbedderFallbackSettings,
    EmbedderSettings,
    ModelSettings,
)
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import LASTING, LATE, patient
from agentd.memory.index.search.search_settings import SearchSettings
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database

NOTE, OTHER = "the blicket is broken", "a list of trees"
QUESTION = SearchQuery("zorp", limit=1)  # another word for a blicket, as the services know


def knowing(dimension):
    """Vectors of so many numbers in which a zorp is a blicket."""

    def answer(body):
        rows = [[0.0] * dimension for _ in body["input"]]
        for row, text in zip(rows, body["input"], strict=True):
            row[0 if "zorp" in text or "blicket" in text else 1] = 1.0
        data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
        return 200, {"data": data}, {}

    return answer


def failing(_):
    return 500, {"error": {"message": "out of order"}}, {}


def texts(service):
    """All texts that it was sent but questions."""
    sent = [text for body in service.requests for text in body["input"]]
    return [text for text in sent if text != QUESTION.text]


@pytest.fixture
def opened(tmp_path, clock, service, other_service):
    """An index of two notes whose vectors `service` makes, and `other_service` in its place."""
    service.usual, other_service.usual = knowing(3), knowing(4)

    @asynccontextmanager
    async def opened(timeout_ms=2_000, **first):
        first = {"base_url": service.url, "model": "first", "dimension": 3, "tries": 1, **first}
        second = EmbedderFallbackSettings(
            base_url=other_service.url, model="second", dimension=4, tries=1, query_prefix=""
        )
        settings = EmbedderSettings(
            provider="openai", embedder=ModelSettings(**first), fallback=(second,)
        )
        async with (
            open_embedders(settings, {}, tmp_path, clock) as embedders,
            Database.open(tmp_path / "index.db", INDEX) as db,
            LiveIndex.open(
                store := SqliteChunks(db),
                clock,
                patient(embedders.chain, clock),
                SearchSettings(query_timeout_ms=timeout_ms),
            ) as index,
        ):
            for path, text in (("a.md", NOTE), ("b.md", OTHER)):
                await index.replace(path, "d", [Chunk(path, 1, 1, text, Source.NOTES, "main")])
            yield embedders, index, store

    return opened


async def first_hit(index):
    found = await index.search(QUESTION, OWNER)
    return (found.hits[0].chunk.text if found.hits else "", found.reason)


async def models(store, chain):
    """How many vectors the store has of each model, and how long they are."""
    found = {}
    for embedder in chain:
        pairs = await store.vectors(embedder.model, 0, 1 << 40, OWNER)
        found[embedder.model.partition("-")[2]] = {len(vector) // 2 for _, vector in pairs}
    return found


async def test_a_fallback_is_sent_nothing_while_the_first_answers(opened, service, other_service):
    async with opened() as (_, index, _):
        await index.settle()
        assert await first_hit(index) == (NOTE, "")
        assert (await index.state()).reason == ""
    assert sorted(texts(service)) == sorted([NOTE, OTHER])
    assert other_service.requests == []


def another_size(body):
    return knowing(2)(body)


@pytest.mark.parametrize("fault", ["500", "dimension", "refused", "no vectors"])
async def test_a_service_that_is_down_is_replaced_until_it_is_back(
    opened, service, other_service, clock, fault
):
    nowhere = {"base_url": "http://127.0.0.1:9/v1"} if fault == "refused" else {}
    async with opened(**nowhere) as (embedders, index, store):
        service.usual = {
            "500": failing,
            "dimension": another_size,
            "no vectors": lambda _: (200, b"<html>", {}),
        }.get(fault, service.usual)
        await index.settle()
        assert await first_hit(index) == (NOTE, "embedder_down")
        state = await index.state()
        assert (state.reason, state.embedder) == ("embedder_down", embedders.chain[1].model)
        (problem,) = [one for one in index.problems() if one.code == "embedder_down"]
        assert "[memory_search.embedder]" in problem.cure or fault == "500"
        assert sorted(set(texts(other_service))) == sorted([NOTE, OTHER])
        if fault == "refused":
            return
        service.usual = knowing(3)
        await clock.advance(400)  # longer than any embedder is left alone
        await index.settle()
        assert await first_hit(index) == (NOTE, "")
        assert (await index.state()).reason == ""
        kept = await models(store, embedders.chain[:2])
        assert kept == {"first-3": {3}, "second-4": {4}}  # of each model its own
        sent = len(other_service.requests)
        await index.replace("c.md", "d", [Chunk("c.md", 1, 1, "new", Source.NOTES, "main")])
        await index.settle()
        assert await first_hit(index) == (NOTE, "")
        assert len(other_service.requests) == sent


async def test_a_service_that_is_too_slow_for_questions_is_replaced_and_said_to_be(
    opened, service, other_service, clock
):
    async with opened(timeout_ms=250) as (embedders, index, _):
        await index.settle()
        assert await first_hit(index) == (NOTE, "")
        may = asyncio.Event()
        service.before = may.wait
        for number in range(LATE):
            found = await index.search(SearchQuery(f"zorp {number}", limit=1), OWNER)
            assert found.reason in ("embedder_slow", "embedder_down")
        assert (await index.state()).reason == "embedder_slow"
        assert index.problems() == ()  # a busy moment is none
        await clock.advance(LASTING)
        assert [problem.code for problem in index.problems()] == ["embedder_slow"]
        await index.settle()  # now the other one is given the texts
        while (await index.state()).embedder != embedders.chain[1].model:
            await asyncio.sleep(0)
        assert await first_hit(index) == (NOTE, "")  # a question that is known needs no service
        may.set()
        await index.search(SearchQuery("zorp again", limit=1), OWNER)
        assert (await index.state()).reason == ""
        assert index.problems() == ()


async def test_the_word_table_answers_when_all_services_are_down(opened, service, other_service):
    async with opened() as (embedders, index, _):
        service.usual = other_service.usual = failing
        await index.settle()
        await first_hit(index)
        found = await index.search(SearchQuery("trees", limit=1), OWNER)
        assert (found.hits[0].chunk.text, found.reason) == (OTHER, "embedder_down")
        assert (await index.state()).embedder == embedders.chain[2].model
        assert [one.code for one in index.problems()] == ["embedder_down"] * 2


async def test_a_fallback_takes_the_place_of_a_first_without_a_key(tmp_path, clock, other_service):
    second = EmbedderFallbackSettings(base_url=other_service.url, model="second", dimension=3)
    settings = EmbedderSettings(provider="openai", fallback=(second,))
    async with open_embedders(settings, {}, tmp_path, clock) as embedders:
        assert [each.model.partition("-")[0] for each in embedders.chain][1:] == ["static"]
        assert embedders.chain[0].model.endswith("second-3")
        status = embedders.status()
        assert (status["provider"], status["reason"]) == ("static", "embedder_unavailable")
        assert status["fallback"][0]["provider"] == "openai"
        assert "127.0.0.1" in status["fallback"][0]["why"]
        (problem,) = embedders.problems()
        assert problem.text.endswith("The others stand in.")


async def test_each_service_has_its_own_limit_a_day(tmp_path, clock, service, other_service):
    first = ModelSettings(base_url=service.url, model="m", dimension=3, daily_tokens=100)
    second = EmbedderFallbackSettings(
        base_url=other_service.url, model="m", dimension=3, daily_tokens=100
    )
    settings = EmbedderSettings(provider="openai", embedder=first, fallback=(second,))
    async with open_embedders(settings, {}, tmp_path, clock) as embedders:
        for embedder in embedders.chain[:2]:
            await embedder.embed(["x" * 200])
    assert len(list(tmp_path.glob("embedder_tokens-*.json"))) == 2


@pytest.mark.parametrize("provider", ["none", "static"])
def test_nothing_stands_behind_what_always_answers(provider):
    with pytest.raises(ValidationError, match="always answers"):
        EmbedderSettings(provider=provider, fallback=(EmbedderFallbackSettings(model="m"),))
