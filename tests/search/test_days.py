"""Queries that ask what there was on some day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import pytest

from agentd.core.search import Chunk, Fusion, SearchOptions, Source
from agentd.memory.index.ranking.temporal import find_anchor, find_days
from agentd.memory.index.search.query import parse
from agentd.memory.index.search.searcher import Searcher

TODAY = date(2026, 11, 22)  # a Sunday
FRIDAY = "memory/2026-11-20.md"


def note(day: str, line: int, text: str) -> Chunk:
    return Chunk(
        f"memory/{day}.md", line, line, text, Source.NOTES, "main", date.fromisoformat(day)
    )


YEAR = [
    note("2026-11-20", 1, "The chimney sweep came at eight."),
    note("2026-11-20", 3, "Bought a lamp for the hall."),
    note("2026-02-13", 1, (
        "A note about what happened: last Friday I noted that I did note nothing."
        )),
    note("2026-02-14", 1, "Remember the talk: it happened last Friday, said Anna."),
    note("2026-11-12", 1, "The chimney sweep comes on 20 November."),
    note("2026-11-02", 1, "We begin to save in November."),
    *(note(f"2026-{1 + n % 10:02}-{1 + n % 28:02}", 5 + n, f"Filler about thing {n}.")
      for n in range(150)),
]  # fmt: skip


def vectors(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors that put the February notes next to every query."""
    matrix = np.random.default_rng(3).standard_normal((count, 16)).astype(np.float32)
    matrix[2:4] = np.float32(1.0)
    return matrix, np.ones(16, np.float32)


def hits(
    query: str,
    *,
    meaning: bool,
    units: Sequence[Chunk] = YEAR,
    fusion: Fusion = Fusion.STRUCTURED,
) -> list[tuple[str, int, float]]:
    searcher = Searcher()
    matrix, vector = vectors(len(units))
    searcher.add(units, matrix if meaning else None)
    options = SearchOptions(today=TODAY, join=False, limit=200, fusion=fusion)
    found = searcher.search(query, vector if meaning else None, options).hits
    return [(*searcher.corpus.place(hit.slots[0])[:2], hit.score) for hit in found]


@pytest.mark.parametrize(
    "query",
    ["What happened on 20 November 2026?", "last Friday", "what did I note last Friday",
     "2026-11-20", "two days ago", "do you remember what we talked about last Friday?",
     "was ist letzten Freitag passiert", "the day before 21 November 2026", "the day after the 19 November 2026"],
)  # fmt: skip
@pytest.mark.parametrize("meaning", [True, False])
@pytest.mark.parametrize("fusion", list(Fusion))
def test_what_is_dated_then_comes_first_and_is_sure(query, meaning, fusion):
    found = hits(query, meaning=meaning, fusion=fusion)
    assert {place[:2] for place in found[:2]} == {(FRIDAY, 1), (FRIDAY, 3)}
    assert all(score > 0.8 for *_, score in found[:2])
    assert found[2][0] == "memory/2026-11-12.md"  # it tells of that day
    assert 0.5 < found[2][2] < found[1][2]
    assert all(score <= 0.1 for *_, score in found[3:])


@pytest.mark.parametrize("meaning", [True, False])
def test_of_a_day_without_notes_nothing_is_sure(meaning):
    empty = [unit for unit in YEAR if unit.path != FRIDAY and "sweep" not in unit.text]
    matrix, vector = vectors(len(empty))
    searcher = Searcher()
    searcher.add(empty, matrix if meaning else None)
    options = SearchOptions(today=TODAY, join=False)
    assert not any(
        "dated" in hit.scores
        for hit in searcher.search("What happened on 20 November 2026?", vector, options).hits
    )


@pytest.mark.parametrize(
    ("query", "only"),
    [
        ("what did we do on 3 May", True),
        ("tell me what happened the week after the conference", True),
        ("the day before yesterday", True),
        ("Christmas", False),
        ("what did I do on Christmas Eve", True),
        ("what did I say about the boiler last Friday", False),
        ("what happened since last Friday", False),
        ("what happened before 3 May", False),
        ("when was I there, on 3 May", True),
        ("what did I note", False),
        ("", False),
        ("on 3 May " + "what happened " * 50, False),
    ],
)
def test_a_query_asks_for_days_alone_or_for_more(query, only):
    assert parse(query, TODAY).only_days is only


def test_words_that_only_ask_what_there_was_are_not_searched_for_beside_a_day():
    assert parse("what did I note about the boiler last Friday", TODAY).terms == ("boiler",)
    assert parse("what did I note about the boiler", TODAY).terms == ("note", "boiler")
    assert "talk" in parse("what did Anna say the day after the talk", TODAY).terms


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("the day before yesterday", date(2026, 11, 20), date(2026, 11, 20)),
        ("dinner in the week of 4 November 2026", date(2026, 11, 2), date(2026, 11, 8)),
        ("last weekend before 4 November", date(2026, 10, 31), date(2026, 11, 1)),
        ("the weekend after 4 November 2026", date(2026, 11, 7), date(2026, 11, 8)),
        ("the first week of November 2026", date(2026, 11, 1), date(2026, 11, 7)),
    ],
)
def test_days_beside_a_named_day_are_named(query, first, last):
    assert parse(query, TODAY).window == (first.toordinal(), last.toordinal())


def test_the_days_of_an_event_do_not_depend_on_what_was_indexed_first():
    units = [
        note("2026-05-01", 1, "The conference."),
        note("2026-06-01", 1, "The conference."),
        note("2026-05-06", 1, "Dinner with Ann."),
        note("2026-06-09", 1, "Dinner with Ben."),
    ]
    query = "where was dinner the week after the conference?"
    told = [hits(query, meaning=False, units=order) for order in (units, units[::-1])]
    assert told[0] == told[1]
    assert told[0][0][0] == "memory/2026-05-06.md"


def test_of_a_long_time_so_many_are_ranked_whatever_was_indexed_first():
    units = [note(f"2025-01-{1 + n % 28:02}", 1 + n, "Something was here.") for n in range(900)]
    first, second = (
        hits("what happened in 2025", meaning=False, units=order) for order in (units, units[::-1])
    )
    assert first == second
    assert len(first) == 200
    assert all(score > 0.8 for *_, score in first)


def test_a_text_names_an_edge_of_a_time_or_the_time_itself():
    assert [one.is_when for one in find_days("until 3 may and on 4 may", TODAY)] == [False, True]
    assert find_anchor("the day after 3 may").event_start == 14
