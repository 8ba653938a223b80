"""A search of the owner's, between what was found and what is shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentd.domain.fact import Category, Fact, FactSource, FactStatus, Provenance, Sighting, Triple
from agentd.domain.memory import OWNERS, Chunk, Found, Hit, Source
from agentd.domain.search import SearchQuery
from agentd.domain.turn import MAIN, Kind, SessionKey
from agentd.domain.workspace import FACTS_PATH, Reader
from agentd.errors import StorageError
from agentd.facts.current_first import CurrentFirst
from agentd.facts.page import parse
from agentd.testing import FakeClock, MemoryFactStore, MemoryWorkspace

NOW = datetime(2026, 11, 20, tzinfo=UTC)
OWNER = Reader(MAIN, Kind.MAIN)
GUEST = Reader(SessionKey("group:tea"), Kind.GROUP)
ASKED = SearchQuery("what is my dog called?")


def fact(fact_id, name, by="") -> Fact:
    source, status = FactSource.EXPLICIT, FactStatus.SUPERSEDED if by else FactStatus.ACTIVE
    text, triple = f"The user's dog is called {name}.", Triple("user", "dog name", name)
    until = NOW if by else None
    return Fact(
        fact_id, text, Category.PERSONAL, source, 0.9, NOW, NOW, status, until, by, triple=triple
    )


REX, MAX = fact("aaaaaaaa", "Rex", "bbbbbbbb"), fact("bbbbbbbb", "Max")


def hit(text, line=1, path="memory/2026-11-02.md") -> Hit:
    source = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
    return Hit(Chunk(path, line, line, text, source, OWNERS), 0.5)


OLD = hit("my dog is called Rex")


class Finding:
    """Finds the same for all."""

    def __init__(self, *hits: Hit) -> None:
        self.found = Found(hits, "" if hits else "no_match")

    async def search(self, query, reader):
        return self.found

    async def read(self, path, reader):
        raise NotImplementedError


class House:
    """The facts, their page and their rows."""

    def __init__(self) -> None:
        self.store = MemoryFactStore()
        self.workspace = MemoryWorkspace({}, FakeClock())
        self.facts: tuple[Fact, ...] = ()
        self.asked = 0

    async def know(self, *facts: Fact) -> None:
        self.facts = facts
        await self.store.save(facts)
        self.workspace = MemoryWorkspace(
            {FACTS_PATH: parse("").edited(facts).render()}, FakeClock()
        )

    async def all(self) -> tuple[Fact, ...]:
        self.asked += 1
        return self.facts

    async def search(self, *hits, query=ASKED, reader=OWNER, **more) -> Found:
        recall = CurrentFirst(Finding(*hits), self, self.store, self.workspace, **more)
        return await recall.search(query, reader)


class Broken(House):
    """Cannot say what it knows."""

    async def all(self):
        raise StorageError("the disk is gone", cure="put it back")


def texts(found: Found) -> list[str]:
    return [hit.chunk.text for hit in found.hits]


@pytest.fixture
async def house():
    house = House()
    await house.know(REX, MAX)
    return house


async def test_the_fact_that_holds_comes_first(house) -> None:
    found = await house.search(OLD)
    assert texts(found) == [MAX.text, OLD.chunk.text]
    assert found.hits[1].superseded_by == f"{FACTS_PATH}:{found.hits[0].chunk.start_line}"


async def test_others_learn_nothing_of_the_facts(house) -> None:
    found = await house.search(OLD, reader=GUEST)
    assert found.hits == (OLD,)
    assert house.asked == 0


@pytest.mark.parametrize("facts", [(), (MAX,)])
async def test_without_anything_past_a_search_is_as_it_was_found(facts) -> None:
    house = House()
    await house.know(*facts)
    finding = Finding(OLD, hit("a cat", 2))
    recall = CurrentFirst(finding, house, house.store, house.workspace)
    assert await recall.search(ASKED, OWNER) is finding.found


async def test_without_a_page_a_search_is_as_it_was_found() -> None:
    assert (await House().search(OLD)).hits == (OLD,)


async def test_facts_are_not_asked_for_where_nothing_was_found(house) -> None:
    assert (await house.search()).reason == "no_match"
    assert house.asked == 0


async def test_the_limit_is_kept(house) -> None:
    several = [OLD, *(hit(f"a dog {n}", n) for n in range(2, 5))]
    found = await house.search(*several, query=replace(ASKED, limit=4))
    assert texts(found) == [MAX.text, OLD.chunk.text, "a dog 2", "a dog 3"]
    assert texts(await house.search(OLD, query=replace(ASKED, limit=1))) == [MAX.text]


@pytest.mark.parametrize("by_query", [True, False])
async def test_the_budget_of_tokens_is_kept(house, by_query) -> None:
    long = hit("dog " * 40, 2)
    if by_query:
        found = await house.search(OLD, long, query=replace(ASKED, max_tokens=20))
    else:
        found = await house.search(OLD, long, max_tokens=20)
    assert texts(found) == [MAX.text, OLD.chunk.text]


async def test_a_search_of_conversations_alone_shows_no_line_of_a_note(house) -> None:
    said = hit("[user] my dog is called Rex", path="sessions/main.jsonl")
    query = replace(ASKED, sources=frozenset({Source.SESSIONS}))
    await house.store.save((), marks={MAIN: 1})
    found = await house.search(said, query=query)
    assert texts(found) == [said.chunk.text]
    assert found.hits[0].superseded_by.startswith(FACTS_PATH)


async def test_where_a_fact_was_said_again_is_past_with_it(house) -> None:
    seen = Sighting(REX.id, NOW, Provenance(MAIN, 7))
    await house.store.save((), sightings=[seen])
    found = await house.search(hit("[user] yes, he is", 7, "sessions/main.jsonl"))
    assert texts(found)[0] == MAX.text


async def test_a_change_of_the_facts_counts_at_once(house) -> None:
    recall = CurrentFirst(Finding(OLD), house, house.store, house.workspace)
    assert texts(await recall.search(ASKED, OWNER))[0] == MAX.text
    later = replace(MAX, text="The user's dog is called Maximilian.")
    house.facts = (REX, later)
    house.workspace.files[FACTS_PATH] = parse("").edited(house.facts).render().encode()
    assert texts(await recall.search(ASKED, OWNER))[0] == later.text


async def test_a_search_answers_without_facts_that_cannot_be_read() -> None:
    house = Broken()
    await house.know(REX, MAX)
    assert (await house.search(OLD)).hits == (OLD,)
