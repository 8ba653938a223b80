"""Days and times as people write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.times import parse_duration
from agentd.providers.offline.language.calendar import last_day, split_time, with_date

NOW = datetime(2026, 11, 21, 23, 40)  # a Saturday
SUNDAY = date(2026, 11, 22)


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("stretch every 2h", "- [ ] stretch (every: 2h)"),
        ("stretch every 30 minutes", "- [ ] stretch (every: 30m)"),
        ("report weekly", "- [ ] report (every: 7d)"),
        ("in 20 minutes to check the oven", "- [ ] check the oven (due: 2026-11-22 00:01)"),
        ("in half an hour to check the oven", "- [ ] check the oven (due: 2026-11-22 00:11)"),
        ("call in 2 days", "- [ ] call (due: 2026-11-23 23:40)"),
        ("call at 5pm", "- [ ] call (due: 2026-11-22 17:00)"),
        ("call at 23:45", "- [ ] call (due: 2026-11-21 23:45)"),
        ("call today", "- [ ] call (due: 2026-11-21 09:00)"),
        ("film tonight", "- [ ] film (due: 2026-11-21 20:00)"),
        ("call on monday at noon", "- [ ] call (due: 2026-11-23 12:00)"),
        ("call on saturday", "- [ ] call (due: 2026-11-28 09:00)"),
        ("gift on 24 December", "- [ ] gift (due: 2026-12-24 09:00)"),
        ("gift on Jan 5th at 7:30", "- [ ] gift (due: 2027-01-05 07:30)"),
        ("pay 2026-12-01 18:15", "- [ ] pay (due: 2026-12-01 18:15)"),
        ("gift on 31 February", "- [ ] gift on 31 February"),
        ("meet at 99:99", "- [ ] meet at 99:99"),
        ("mark (due: 2030-01-01)", "- [ ] mark [due: ] (due: 2030-01-01 09:00)"),
        ("two\nlines", "- [ ] two lines"),
    ],
)
def test_times_become_marks_of_the_checklist(text, entry):
    assert split_time(text, NOW).entry == entry


@pytest.mark.parametrize("second", [0, 1, 59])
@pytest.mark.parametrize(("span", "minutes"), [("1 minute", 1), ("2 hours", 120)])
def test_a_time_from_now_never_comes_early(second, span, minutes):
    """Prompts tell the time without its seconds."""
    now = NOW + timedelta(seconds=second)
    due = datetime.fromisoformat(split_time(f"sneeze in {span}", NOW).at)
    assert timedelta() <= due - (now + timedelta(minutes=minutes)) <= timedelta(minutes=1)


def test_without_a_clock_only_absolute_dates_count():
    assert split_time("call tomorrow", None).marks == ""
    assert split_time("call 2026-12-01", None).marks == "(due: 2026-12-01 09:00)"


@given(st.integers(0, 9999), st.sampled_from(["m", "h", "days", "weeks", "hours"]))
def test_intervals_are_ones_that_the_checklist_can_read(count, unit):
    marks = split_time(f"x every {count} {unit}", NOW).marks
    assert parse_duration(marks.removeprefix("(every: ").removesuffix(")"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("the exam is tomorrow at 9", "the exam is on 2026-11-23 at 9"),
        ("exam on Friday", "exam on 2026-11-27"),
        ("next Tuesday", "2026-11-24"),
        ("Flug am Montag um 9", "Flug on 2026-11-23 um 9"),
        ("Friday, 4 December", "Friday, 4 December"),
        ("May 3", "May 3"),
    ],
)
def test_a_day_that_passes_is_told_as_a_date(said, told):
    assert with_date(said, SUNDAY) == told


def test_without_the_day_it_was_said_such_a_day_is_not_told():
    assert with_date("tomorrow", None) is None


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("May 3 at 10:00", "2027-05-03"),
        ("24. Dezember", "2026-12-24"),
        ("from 2026-12-01 to 2026-12-05", "2026-12-05"),
        ("31 February", None),
        ("soon", None),
    ],
)
def test_the_last_day_that_is_named(said, day):
    assert str(last_day(said, SUNDAY)) == str(day)
