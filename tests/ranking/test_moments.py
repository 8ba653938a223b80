"""Which days words mean."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.ranking import temporal as moments

THURSDAY = date(2026, 11, 12)


def named(text, today=THURSDAY):
    return [(one.first.isoformat(), one.last.isoformat()) for one in moments.find_days(text, today)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("how far did i run yesterday", "2026-11-11", "2026-11-11"),
        ("on 2026-03-04 at noon", "2026-03-04", "2026-03-04"),
        ("am 4.3.2026", "2026-03-04", "2026-03-04"),
        ("on 16 august, 2023", "2023-08-16", "2023-08-16"),
        ("on august 16th", "2026-08-16", "2026-08-16"),
        ("on the first of may", "2026-05-01", "2026-05-01"),
        ("from 12 to 14 may 2026", "2026-05-12", "2026-05-14"),
        ("what happened in june", "2026-06-01", "2026-06-30"),
        ("in december", "2025-12-01", "2025-12-31"),
        ("in may 2023", "2023-05-01", "2023-05-31"),
        ("last week", "2026-11-02", "2026-11-08"),
        ("last weekend", "2026-11-07", "2026-11-08"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("last tuesday", "2026-11-10", "2026-11-10"),
        ("on thursday", "2026-11-05", "2026-11-05"),
        ("three days ago", "2026-11-09", "2026-11-09"),
        ("on christmas eve", "2025-12-24", "2025-12-24"),
        ("gestern abend", "2026-11-11", "2026-11-11"),
        ("vor drei tagen", "2026-11-09", "2026-11-09"),
        ("im marz", "2026-03-01", "2026-03-31"),
        ("la semaine derniere", "2026-11-02", "2026-11-08"),
        ("el mes pasado", "2026-10-01", "2026-10-31"),
    ],
)
def test_a_phrase_names_its_days(text, first, last):
    assert named(text) == [(first, last)]


@pytest.mark.parametrize(
    ("today", "saturday"),
    [("2026-11-28", "2026-11-28"), ("2026-11-29", "2026-11-28"), ("2026-11-30", "2026-11-28")],
)
def test_this_weekend_is_the_one_that_goes_on_or_else_the_one_that_was(today, saturday):
    (found,) = moments.find_days("what did i do this weekend", date.fromisoformat(today))
    assert str(found.first) == saturday


@pytest.mark.parametrize(
    "text", ["may i ask", "31 june", "the second one", "2026-13-40", "march on"]
)
def test_other_words_name_no_days(text):
    assert named(text) == []


@given(st.text(alphabet="0123456789.-/ maylstwekdgo", max_size=40), st.dates())
def test_any_text_on_any_day_is_read(text, today):
    for one in moments.find_days(text, today):
        assert one.first <= one.last
    moments.find_anchor(text)
    moments.dates_in(text, today)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("dinner the week after the conference", date(2026, 5, 15), date(2026, 5, 24)),
        ("bought the day before the conference", date(2026, 5, 11), date(2026, 5, 11)),
        ("hike on the weekend after the conference", date(2026, 5, 16), date(2026, 5, 17)),
        ("on the second day of the conference", date(2026, 5, 13), date(2026, 5, 13)),
    ],
)
def test_an_event_names_days_beside_it(text, first, last):
    anchor = moments.find_anchor(text)
    assert anchor is not None
    assert anchor.event == "the conference"
    conference = (date(2026, 5, 12), date(2026, 5, 14))
    assert moments.beside(conference, anchor.unit, anchor.side, anchor.count) == (first, last)


def test_a_text_tells_of_days_by_month_or_figures_only():
    assert moments.dates_in("conference: 12 to 14 may", date(2026, 1, 3)) == (
        date(2026, 5, 12),
        date(2026, 5, 14),
    )
    assert moments.dates_in("conference: 12 to 14 may 2026", None) == (
        date(2026, 5, 12),
        date(2026, 5, 14),
    )
    assert moments.dates_in("conference: 12 to 14 may", None) is None
    assert moments.dates_in("it was the 29 february", date(2024, 12, 1)) == (date(2025, 2, 28),) * 2
    assert moments.dates_in("we went yesterday", THURSDAY) is None
