"""The same thing asked in several ways."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from msgspec.structs import replace

from agentd.core.search import OWNER, Chunk, Ranking, SearchOptions, SearchQuery, Source
from agentd.memory.index.ranking.kinds import KindClassifiers
from agentd.memory.index.search import phrasings
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import patient
from agentd.memory.index.search.searcher import Searcher
from agentd.testing import HashEmbedder

OPTIONS = SearchOptions()
NOTES = [
    "The roofer found rot in the rafters above the nursery",
    "Zahnarzt: Emil hat am Dienstag einen Termin",
    "Bought beans and a grinder for the office kitchen",
    "The rafters were painted white in May",
]


def a_note(line, text, day=None):
    return Chunk(f"{line}.md", line, line, text, Source.NOTES, "main", day)


@pytest.fixture
def searcher():
    made = Searcher()
    made.add([a_note(3 * n, text) for n, text in enumerate(NOTES, 1)])
    return made


def found(searcher, *texts, **more):
    options = replace(OPTIONS, **more)
    return [hit.slots for hit in phrasings.search(searcher, [(t, None) for t in texts], options)]


def test_what_only_another_wording_finds_is_found(searcher):
    assert found(searcher, "damage in the attic timber") == []
    assert found(searcher, "damage in the attic timber", "rot rafters")[0] == (0,)
    assert found(searcher, "dentist", "Zahnarzt")[0] == (1,)


def test_a_unit_that_several_wordings_find_stands_once_and_first(searcher):
    hits = found(searcher, "rafters", "rot above the nursery", "roofer", join=False)
    assert hits[0] == (0,)
    assert len(hits) == len(set(hits)) == 2


def test_scores_fall_and_are_those_of_the_best_wording(searcher):
    asked = [("rot rafters", None), ("roofer nursery rot", None)]
    both = list(phrasings.search(searcher, asked, OPTIONS))
    alone = [next(iter(phrasings.search(searcher, [one], OPTIONS))) for one in asked]
    assert both[0].score == max(hit.score for hit in alone)
    assert [hit.score for hit in both] == sorted((hit.score for hit in both), reverse=True)


def test_the_budget_and_the_limit_are_those_of_all_wordings_together(searcher):
    asked = [("rafters", None), ("Zahnarzt", None), ("grinder", None)]
    whole = list(phrasings.search(searcher, asked, OPTIONS))
    assert len(whole) == 4
    spent = whole[0].tokens + whole[1].tokens
    kept = phrasings.search(searcher, asked, replace(OPTIONS, max_tokens=spent))
    assert sum(hit.tokens for hit in kept) <= spent
    assert len(phrasings.search(searcher, asked, replace(OPTIONS, limit=3))) == 3
    nothing = phrasings.search(searcher, asked, replace(OPTIONS, max_tokens=1))
    assert (nothing.hits, nothing.reason) == ((), "budget")


def test_what_is_outdated_stands_behind_what_is_newer_in_every_wording(searcher):
    made = Searcher()
    old, new = date(2026, 1, 5), date(2026, 6, 5)
    made.add([a_note(1, "The guest wifi password is heron", old)])
    made.add([a_note(9, "The guest wifi password is kestrel", new)])
    asked = [("heron", None), ("guest wifi password", None), ("heron wifi", None)]
    hits = list(phrasings.search(made, asked, OPTIONS))
    assert [(hit.slots, hit.superseded_by) for hit in hits] == [((1,), None), ((0,), 1)]


@pytest.mark.parametrize(("state", "first"), [(10.0, (1,)), (-10.0, (0,))])
def test_a_question_about_what_was_keeps_its_order_in_several_wordings_too(state, first):
    made = Searcher()
    old, new = date(2026, 1, 5), date(2026, 6, 5)
    vectors = np.array([[1.0, 0.0], [0.9, 0.4]], np.float32)
    texts = ("Heron was the guest wifi password", "The guest wifi password is kestrel")
    made.add([a_note(n, t, d) for n, t, d in zip((1, 9), texts, (old, new), strict=True)], vectors)
    kind = np.array([state, 0.0, 0.0], np.float32)
    made.kinds = KindClassifiers(kind, kind, np.zeros(2, np.float32))
    asked = [("guest wifi password heron", vectors[0]), ("heron guest wifi", vectors[0])]
    hits = list(phrasings.search(made, asked, OPTIONS))
    assert hits[0].slots == first
    assert {hit.slots: hit.superseded_by for hit in hits} == {(0,): 1, (1,): None}


def test_confidence_is_that_of_the_wording_that_found_most_surely():
    class Sure(Searcher):
        def search(self, query, vector, options):
            ranking = super().search(query, vector, options)
            return Ranking(ranking.hits, ranking.reason, {"rafters": 0.2, "rot": 0.7}.get(query, 1))

    made = Sure()
    made.add([a_note(1, NOTES[0])])
    asked = [("rafters", None), ("rot", None), ("found nowhere else", None)]
    assert phrasings.search(made, asked[:2], OPTIONS).confidence == 0.7
    missing = [("elephants", None), ("rot", None)]
    assert phrasings.search(made, missing, OPTIONS).confidence == 0.7


async def test_all_wordings_are_embedded_by_one_call(store, clock, chunk):
    class Counting(HashEmbedder):
        asked = ()

        async def embed(self, texts, *, query=False):
            if query:
                self.asked = (*self.asked, tuple(texts))
            return await super().embed(texts, query=query)

    embedder = Counting()
    async with LiveIndex.open(store, clock, patient([embedder], clock)) as index:
        await index.replace("a.md", "d", [chunk("green tea", "a.md")])
        await index.replace("b.md", "d", [chunk("grüner Tee", "b.md")])
        asked = SearchQuery("green tea", queries=("grüner Tee", "?!", "green tea"))
        hits = (await index.search(asked, OWNER)).hits
    assert {hit.chunk.path for hit in hits} == {"a.md", "b.md"}
    assert embedder.asked == (("green tea", "grüner Tee"),)


async def test_a_wording_with_words_saves_a_query_that_has_none(index, chunk):
    await index.replace("a.md", "d", [chunk("green tea", "a.md")])
    found = await index.search(SearchQuery("?!", queries=("tea",)), OWNER)
    assert [hit.chunk.path for hit in found.hits] == ["a.md"]
    nothing = await index.search(SearchQuery("?!", queries=("…",)), OWNER)
    assert nothing.reason == "empty_query"
