"""Slots: anchored, one catch-up, no storm when clocks jump."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.automation.heartbeat import hours as due
from agentd.automation.heartbeat.hours import Hours, Window

ALWAYS = Hours(Window(0, 1440), None, ZoneInfo("UTC"))
DAY = Hours(Window(480, 1320), None, ZoneInfo("UTC"))
HALF = timedelta(minutes=30)
TEN = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)


def test_the_first_beat_is_an_interval_away() -> None:
    assert due.settle(None, TEN, HALF, ALWAYS) == TEN + HALF


def test_a_restart_keeps_the_slot() -> None:
    for minutes in range(30):
        now = TEN + timedelta(minutes=minutes)
        assert due.settle(TEN + HALF, now, HALF, ALWAYS) == TEN + HALF


def test_a_clock_set_back_pulls_the_slot_back() -> None:
    past = TEN - timedelta(days=365)
    assert due.settle(TEN + HALF, past, HALF, ALWAYS) == past + HALF


def test_a_small_step_back_moves_no_slot() -> None:
    assert due.settle(TEN + HALF, TEN - timedelta(seconds=20), HALF, ALWAYS) == TEN + HALF


def test_the_next_opening_is_not_too_far_ahead() -> None:
    night = datetime(2026, 5, 4, 23, 0, tzinfo=UTC)
    opening = datetime(2026, 5, 5, 8, 0, tzinfo=UTC)
    assert due.settle(opening, night, HALF, DAY) == opening
    assert due.settle(opening + timedelta(days=9), night, HALF, DAY) == opening


def test_a_shorter_interval_in_closed_hours_waits_for_the_opening_alone() -> None:
    night = datetime(2026, 5, 4, 23, 0, tzinfo=UTC)
    opening = datetime(2026, 5, 5, 8, 0, tzinfo=UTC)
    stored = night + timedelta(minutes=28)
    assert due.settle(stored, night, timedelta(minutes=1), DAY) == opening


def test_what_was_missed_is_one_slot() -> None:
    now = TEN + timedelta(hours=8, minutes=10)
    assert due.slot(TEN, now, HALF) == TEN + timedelta(hours=8)
    assert due.following(TEN, now, HALF) == TEN + timedelta(hours=8, minutes=30)


@given(
    st.integers(1, 10**6),
    st.integers(0, 10**9),
)
def test_slots_stay_on_the_anchor(interval_s: int, late_s: int) -> None:
    interval, now = timedelta(seconds=interval_s), TEN + timedelta(seconds=late_s)
    slot, following = due.slot(TEN, now, interval), due.following(TEN, now, interval)
    assert TEN <= slot <= now < following == slot + interval
    assert (slot - TEN) % interval == timedelta()
    assert due.following(slot, now, interval) == following


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(None, 30, id="no item"),
        pytest.param(12, 12, id="earlier"),
        pytest.param(45, 30, id="later"),
        pytest.param(0.2, 1, id="not within a minute"),
    ],
)
def test_an_item_pulls_the_beat_forward(item: float | None, expected: float) -> None:
    at = None if item is None else TEN + timedelta(minutes=item)
    earliest = TEN + due.spacing(HALF)
    assert due.pull_forward(TEN + HALF, at, earliest, ALWAYS) == TEN + timedelta(minutes=expected)


def test_an_item_outside_the_hours_pulls_the_beat_to_the_opening() -> None:
    night = datetime(2026, 5, 4, 22, 0, tzinfo=UTC)
    opening = datetime(2026, 5, 5, 8, 0, tzinfo=UTC)
    item = night + timedelta(hours=1)
    assert due.pull_forward(opening, item, night, DAY) == opening
    assert due.pull_forward(opening + HALF, item, night, DAY) == opening
