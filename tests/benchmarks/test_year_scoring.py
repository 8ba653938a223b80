"""The marks of the year of notes: what an all-knowing engine, a mute one and plain keywords get."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.workspace_year.baseline import Fts5
from benchmarks.workspace_year.reading import Asked, Place, questions
from benchmarks.workspace_year.scoring import Span, answered, mark, newest_above, recall_within
from benchmarks.workspace_year.units import lines, units


def _asked(need: str = "any", stale: Sequence[Place] = ()) -> Asked:
    gold = (Place("memory/a.md", 4), Place("memory/b.md", 7))
    now = datetime(2026, 11, 12, tzinfo=UTC)
    return Asked("x-01", "changed", "dev", "where?", now, need, gold, tuple(stale))


def _span(path: str, line: int, tokens: int = 10) -> Span:
    return Span(path, line, line, tokens)


def _all_knowing(asked: Asked) -> list[Span]:
    return [_span(place.path, place.line) for place in (*asked.gold, *asked.stale)]


def test_an_engine_that_knows_everything_gets_full_marks() -> None:
    asked = [one for one in questions() if one.gold]
    marks = mark(asked, [_all_knowing(one) for one in asked])
    assert (marks.hit1, marks.hit3, marks.recall, marks.newest) == (1.0, 1.0, 1.0, 1.0)


def test_an_engine_that_finds_nothing_gets_none() -> None:
    asked = [one for one in questions() if one.gold]
    marks = mark(asked, [[] for _ in asked])
    assert (marks.hit1, marks.hit3, marks.recall, marks.newest) == (0.0, 0.0, 0.0, 0.0)


def test_one_of_two_lines_is_enough_only_where_any_is() -> None:
    half = [_span("memory/b.md", 7)]
    assert answered(_asked("any"), half)
    assert not answered(_asked("all"), half)
    assert recall_within(_asked("all"), half) == 0.5


def test_a_hit_past_the_budget_does_not_count() -> None:
    spans = [_span("memory/z.md", 1, 995), _span("memory/a.md", 4, 10)]
    assert recall_within(_asked(), spans, 1000) == 0.0
    assert recall_within(_asked(), spans, 1005) == 1.0


def test_a_current_value_below_a_stale_one_is_not_first() -> None:
    old = Place("memory/old.md", 2)
    asked = _asked(stale=[old])
    current, stale = _span("memory/a.md", 4), _span(old.path, old.line)
    assert newest_above(asked, [current, stale])
    assert newest_above(asked, [current])
    assert not newest_above(asked, [stale, current])
    assert not newest_above(asked, [stale])
    assert not newest_above(asked, [])


def test_every_gold_and_stale_line_lies_in_a_unit_of_search() -> None:
    spans = {
        (unit.path, line) for unit in units() for line in range(unit.start_line, unit.end_line + 1)
    }
    for asked in questions():
        for place in (*asked.gold, *asked.stale):
            assert (place.path, place.line) in spans, asked.id


def test_plain_keywords_find_identifiers_and_hardly_a_paraphrase() -> None:
    plain = Fts5(lines())
    by_type = {
        kind: [asked for asked in questions() if asked.type == kind]
        for kind in ("paraphrase", "identifier", "changed")
    }
    marks = {kind: mark(asked, [plain(one) for one in asked]) for kind, asked in by_type.items()}
    assert marks["paraphrase"].hit3 < 0.1
    assert marks["identifier"].hit3 > 0.9
    assert (marks["changed"].newest or 0.0) < 0.5
