"""Search with the graph as a leg: what related names find is put between what words found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentd.domain.memory import SHARED, Chunk, Found, Hit, Source
from agentd.domain.search import EmptyReason, SearchQuery
from agentd.domain.turn import MAIN, Kind, SessionKey
from agentd.domain.workspace import Reader
from agentd.errors import StorageError
from agentd.graph.keeper import GraphKeeper
from agentd.graph.leg import GraphLeg, joined
from agentd.graph.recall import Recollection
from agentd.testing import FakeClock, InMemoryGraph, MemoryWorkspace
from tests.graph.test_keeper import Notes, fact

OWN = Reader(MAIN, Kind.MAIN)


def hit(path, score, line=1):
    return Hit(Chunk(path, line, line + 1, "x" * 40, Source.NOTES, SHARED), score)


class Words:
    """A search that finds hits by the words of the query."""

    def __init__(self, **hits):
        self.hits = hits
        self.asked = []

    async def search(self, query, reader):
        self.asked.append(query.text)
        found = [one for word, one in self.hits.items() if word in query.text.casefold()]
        found.sort(key=lambda one: -one.score)
        return Found(tuple(found[: query.limit]), "" if found else EmptyReason.NO_MATCH)

    async def read(self, path, reader):
        raise AssertionError(path)


class Looked(InMemoryGraph):
    """A graph that counts how often a question looks at it."""

    looks = 0

    async def named(self, names):
        self.looks += 1
        return await super().named(names)

    async def predicates(self):
        self.looks += 1
        return await super().predicates()

    async def edges(self, *args, **kwargs):
        self.looks += 1
        return await super().edges(*args, **kwargs)


@pytest.fixture
def store():
    return Looked()


@pytest.fixture
async def graph(store):
    clock = FakeClock(datetime(2026, 11, 22, tzinfo=UTC))

    async def facts():
        return (
            fact("a", "sister name", "Klara"),
            fact("b", "home", "Bern", "sister Klara"),
            fact("c", "dog name", "Max"),
        )

    keeper = GraphKeeper(MemoryWorkspace(clock=clock), store, Notes(), clock, facts)
    await keeper.level()
    store.looks = 0
    return Recollection(store, clock)


def paths(found):
    return [one.chunk.path for one in found.hits]


async def test_what_the_graph_relates_is_found_too(graph):
    words = Words(klara=hit("klara.md", 0.5), bern=hit("bern.md", 0.9), max=hit("max.md", 1.0))
    found = await GraphLeg(words, graph).search(SearchQuery("visit Klara"), OWN)
    assert paths(found) == ["bern.md", "klara.md"]
    assert found.hits[0].scores["graph"] == found.hits[0].score == pytest.approx(0.72)
    assert words.asked[0] == "visit Klara"
    assert "bern" in words.asked[1]


async def test_it_fills_an_empty_answer_and_keeps_to_limit_and_budget(graph):
    words = Words(bern=hit("bern.md", 0.9))
    found = await GraphLeg(words, graph).search(SearchQuery("visit Klara"), OWN)
    assert (paths(found), found.reason) == (["bern.md"], "")
    words = Words(klara=hit("klara.md", 0.9), bern=hit("bern.md", 0.9))
    leg = GraphLeg(words, graph)
    assert paths(await leg.search(SearchQuery("Klara", limit=1), OWN)) == ["klara.md"]
    assert paths(await leg.search(SearchQuery("Klara", max_tokens=15), OWN)) == ["klara.md"]
    assert paths(await GraphLeg(words, graph, 15).search(SearchQuery("Klara"), OWN)) == ["klara.md"]


async def test_words_that_stand_inside_others_of_the_query_are_added_all_the_same(graph):
    words = Words()
    await GraphLeg(words, graph).search(SearchQuery("Klara and Bernadette"), OWN)
    assert "bern" in words.asked[1].split()
    assert "klara" not in words.asked[1].split()


async def test_an_answer_that_the_graph_filled_says_what_that_search_had_to_do_without(graph):
    class Slow(Words):
        async def search(self, query, reader):
            return replace(await super().search(query, reader), reason="embedder_slow")

    found = await GraphLeg(Slow(bern=hit("bern.md", 0.9)), graph).search(SearchQuery("Klara"), OWN)
    assert (paths(found), found.reason) == (["bern.md"], "embedder_slow")


async def test_what_was_found_is_the_answer_where_the_second_search_fails(graph):
    class Once(Words):
        async def search(self, query, reader):
            if self.asked:
                raise StorageError("the disk is gone")
            return await super().search(query, reader)

    words = Once(klara=hit("klara.md", 0.5))
    assert paths(await GraphLeg(words, graph).search(SearchQuery("Klara"), OWN)) == ["klara.md"]


async def test_a_query_that_names_nothing_costs_two_looks_at_the_graph(store, graph):
    await GraphLeg(Words(), graph).search(SearchQuery("where is the ferry?"), OWN)
    assert 0 < store.looks <= 2
    await GraphLeg(Words(), graph).search(SearchQuery("visit Klara"), OWN)
    assert store.looks > 2


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        ("where is the ferry?", OWN),
        ("tell me", OWN),
        ("visit Klara", Reader(SessionKey("group:a"), Kind.GROUP)),
        ("visit Klara", Reader(SessionKey("isolated:a"), Kind.ISOLATED)),
    ],
)
async def test_what_names_nothing_and_sessions_of_others_are_searched_once(graph, text, reader):
    words = Words(klara=hit("klara.md", 0.5), bern=hit("bern.md", 0.9))
    await GraphLeg(words, graph).search(SearchQuery(text), reader)
    assert words.asked == [text]


def test_what_was_found_anyway_stays_in_its_order():
    found = [hit("new.md", 0.4), hit("old.md", 0.6), hit("c.md", 0.2)]
    related = [hit("old.md", 0.7, 2), hit("d.md", 0.9), hit("e.md", 0.1)]
    order = [one.chunk.path for one in joined(found, related)]
    assert order == ["d.md", "new.md", "old.md", "c.md", "e.md"]


def test_what_the_related_names_found_better_moves_up():
    moved = joined([hit("a.md", 0.4), hit("b.md", 0.1)], [hit("b.md", 1.0), hit("a.md", 0.3)])
    assert [(one.chunk.path, one.score) for one in moved] == [("b.md", 0.8), ("a.md", 0.4)]
