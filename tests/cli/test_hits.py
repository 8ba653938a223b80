"""Hits as a person reads them."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from agentd.app.cli.hits import DEGRADED, EMPTY, SCORES, HitLook, degraded_text, hits_text
from agentd.core.search import Chunk, EmptyReason, SearchOptions, SearchShortfall, Source
from agentd.memory.index.search.searcher import Searcher

HIT: dict[str, Any] = {
    "path": "memory/2026-11-21.md",
    "start_line": 3,
    "end_line": 4,
    "text": "- The invoices of the roofer\n- number 4711",
    "score": 0.834,
    "source": "notes",
    "date": "2026-11-21",
    "scores": {"keyword": 1.0, "cosine": 0.62, "decay": 0.98},
    "newer": "",
}
OLD = {**HIT, "path": "MEMORY.md", "start_line": 9, "end_line": 9, "date": None}
OLD["newer"] = "memory/2026-11-21.md:4"


def answer(*hits: dict[str, Any], reason: str = "") -> dict[str, Any]:
    return {"results": list(hits), "reason": reason}


def test_a_hit_says_where_it_stands_why_and_what() -> None:
    assert hits_text(answer(HIT), "invoice 4711?", HitLook()) == (
        "memory/2026-11-21.md:3-4  2026-11-21 · notes · .83\n"
        "  words: invoice, 4711 · meaning .62 · 2% less for its age\n"
        "    - The invoices of the roofer\n"
        "    - number 4711"
    )


def test_an_older_value_names_the_newer_one_which_says_of_how_many_it_is_the_newest() -> None:
    text = hits_text(answer(HIT, OLD), "invoice", HitLook())
    assert "newest of 2" in text.split("\n\n")[0]
    assert "older: memory/2026-11-21.md:4 says something newer" in text.split("\n\n")[1]
    assert text.split("\n\n")[1].startswith("MEMORY.md:9  notes · .83\n")


def test_a_hit_without_any_word_of_the_query_says_what_speaks_for_it() -> None:
    beside = {**HIT, "scores": {"wide_cover": 0.7, "date": 1.0}}
    text = hits_text(answer(beside), "rain", HitLook())
    assert "of the days asked for · the lines around it have more of your words" in text
    far = {**HIT, "scores": {"cosine": 0.1, "answers": 0.1}}
    assert "\n  meaning .10\n" in hits_text(answer(far), "rain", HitLook())


def test_words_are_marked_in_whatever_form_they_stand_there() -> None:
    text = hits_text(answer(HIT), "INVOICE from the", HitLook(80, colours=True))
    assert "The \x1b[1minvoices\x1b[0m of the roofer" in text
    han = {**HIT, "text": "明日のランチの予約", "scores": {}}
    assert "明日の\x1b[1mランチ\x1b[0mの予約" in hits_text(
        answer(han), "ランチ", HitLook(80, colours=True)
    )


@pytest.mark.parametrize("query", ["", "the of", "(", "\x00", "\ud800", "*" * 9000, "a.b|c["])
def test_any_query_can_be_shown(query: str) -> None:
    assert "The invoices" in hits_text(answer(HIT), query, HitLook(80))


def test_lines_fit_the_terminal_and_nothing_steers_it() -> None:
    wide = {**HIT, "text": f"{'word ' * 60}\x1b[31m\x07red", "path": f"memory/{'deep/' * 30}a.md"}
    lines = hits_text(answer(wide), "word", HitLook(80)).split("\n")
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)


def test_every_partial_score_is_in_the_table() -> None:
    table = (
        hits_text(answer(HIT, OLD), "invoice", HitLook(), explain=True)
        .split("\n\n")[-1]
        .split("\n")
    )
    assert table[0].split() == ["hit", "1", "2"]
    assert table[1].split() == ["score", "0.834", "0.834"]
    assert [line[:24].rstrip(" 0.1") for line in table[2:]] == [
        "words of the query",
        "meaning",
        "left of it by its age",
    ]
    newer = {**HIT, "scores": {"keyword": 1.0, "eclipse": 0.5}}
    assert hits_text(answer(newer), "x", HitLook(), explain=True).endswith(
        "\neclipse              0.500"
    )
    many = hits_text(answer(*[HIT] * 9), "invoice", HitLook(), explain=True)
    assert max(map(len, many.split("\n"))) <= 80


def test_every_score_that_a_search_gives_has_plain_words() -> None:
    searcher = Searcher()
    day = date(2026, 11, 20)
    said = [("Ann", "When does the roofer come?"), ("Bo", "On Friday, invoice 4711, 3 men.")]
    chunks = [
        Chunk("sessions/a", n, n, text, Source.SESSIONS, "main", day, who)
        for n, (who, text) in enumerate(said, 1)
    ]
    searcher.add(chunks, np.eye(2, dtype=np.float32))
    options = SearchOptions(today=day, join=False)
    found = [
        hit
        for query in ("roofer invoice", "today")
        for hit in searcher.search(query, np.ones(2, np.float32), options)
    ]
    assert set(SCORES) - {"graph"} == {name for hit in found for name in hit.scores}
    assert max(map(len, SCORES.values())) <= 24
    assert len(set(SCORES.values())) == len(SCORES)
    assert not any("_" in words for words in SCORES.values())


@pytest.mark.parametrize("reason", [*EmptyReason, *SearchShortfall])
def test_an_empty_answer_says_why_and_what_to_do_next(reason: str) -> None:
    what, then = hits_text(answer(reason=reason), "x", HitLook()).split("\n")
    assert (what, then[:2]) == (EMPTY[reason][0], "→ ")
    assert degraded_text(answer(reason=reason)) == ""


@pytest.mark.parametrize("lack", [*SearchShortfall, EmptyReason.NOTHING_FITS])
def test_hits_that_are_not_all_or_most_likely_no_answer_say_so_beside(lack: str) -> None:
    assert degraded_text(answer(HIT, reason=lack)) == DEGRADED[lack]
    assert degraded_text(answer(HIT)) == ""


def test_a_reason_of_a_newer_daemon_is_told_as_it_is() -> None:
    assert "(eclipse)" in hits_text(answer(reason="eclipse"), "x", HitLook())
    assert "(eclipse)" in degraded_text(answer(HIT, reason="eclipse"))
