"""Search with the graph as a leg: what related names find is put between what words found."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentd.domain.memory import SHARED, Chunk, Found, Hit, Source
from agentd.domain.search import EmptyReason, SearchQuery
from agentd.domain.turn import MAIN, Kind, SessionKey
from agentd.domain.workspace import Reader
from agentd.graph.desk import GraphDesk
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


@pytest.fixture
def desk():
    clock, store = FakeClock(datetime(2026, 11, 22, tzinfo=UTC)), InMemoryGraph()

    async def facts():
        return (
            fact("a", "sister name", "Klara"),
            fact("b", "home", "Bern", "sister Klara"),
            fact("c", "dog name", "Max"),
        )

    keeper = GraphKeeper(MemoryWorkspace(clock=clock), store, Notes(), clock, facts)
    return GraphDesk(keeper, Recollection(store, clock), store, clock)


def paths(found):
    return [one.chunk.path for one in found.hits]


async def test_what_the_graph_relates_is_found_too(desk):
    words = Words(klara=hit("klara.md", 0.5), bern=hit("bern.md", 0.9), max=hit("max.md", 1.0))
    found = await GraphLeg(words, desk).search(SearchQuery("visit Klara"), OWN)
    assert paths(found) == ["bern.md", "klara.md"]
    assert found.hits[0].scores["graph"] == found.hits[0].score == pytest.approx(0.72)
    assert words.asked[0] == "visit Klara"
    assert "bern" in words.asked[1]


async def test_it_fills_an_empty_answer_and_keeps_to_limit_and_budget(desk):
    words = Words(bern=hit("bern.md", 0.9))
    found = await GraphLeg(words, desk).search(SearchQuery("visit Klara"), OWN)
    assert (paths(found), found.reason) == (["bern.md"], "")
    words = Words(klara=hit("klara.md", 0.9), bern=hit("bern.md", 0.9))
    leg = GraphLeg(words, desk)
    assert paths(await leg.search(SearchQuery("Klara", limit=1), OWN)) == ["klara.md"]
    assert paths(await leg.search(SearchQuery("Klara", max_tokens=15), OWN)) == ["klara.md"]
    assert paths(await GraphLeg(words, desk, 15).search(SearchQuery("Klara"), OWN)) == ["klara.md"]


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        ("where is the ferry?", OWN),
        ("tell me", OWN),
        ("visit Klara", Reader(SessionKey("group:a"), Kind.GROUP)),
        ("visit Klara", Reader(SessionKey("isolated:a"), Kind.ISOLATED)),
    ],
)
async def test_what_names_nothing_and_sessions_of_others_are_searched_once(desk, text, reader):
    words = Words(klara=hit("klara.md", 0.5), bern=hit("bern.md", 0.9))
    await GraphLeg(words, desk).search(SearchQuery(text), reader)
    assert words.asked == [text]


def test_what_was_found_anyway_stays_in_its_order():
    found = [hit("new.md", 0.4), hit("old.md", 0.6), hit("c.md", 0.2)]
    related = [hit("old.md", 0.7, 2), hit("d.md", 0.9), hit("e.md", 0.1)]
    order = [one.chunk.path for one in joined(found, related)]
    assert order == ["d.md", "new.md", "old.md", "c.md", "e.md"]


def test_what_the_related_names_found_better_moves_up():
    moved = joined([hit("a.md", 0.4), hit("b.md", 0.1)], [hit("b.md", 1.0), hit("a.md", 0.3)])
    assert [(one.chunk.path, one.score) for one in moved] == [("b.md", 0.8), ("a.md", 0.4)]
