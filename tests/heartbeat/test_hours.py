"""Active and quiet hours, across midnight and the nights when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.automation.heartbeat.hours import Hours, Window
from agentd.core.beat import Reason

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "UTC",
]


def hours(start: int, end: int, zone: str = "UTC", quiet: Window | None = None) -> Hours:
    return Hours(Window(start, end), quiet, ZoneInfo(zone))


@pytest.mark.parametrize(
    ("start", "end", "minute", "is_open"),
    [
        (480, 1320, 479, False),
        (480, 1320, 480, True),
        (480, 1320, 1319, True),
        (480, 1320, 1320, False),
        (1320, 360, 1320, True),
        (1320, 360, 0, True),
        (1320, 360, 359, True),
        (1320, 360, 360, False),
        (480, 1440, 1439, True),
        (480, 0, 1439, True),
        (480, 0, 0, False),
        (0, 1440, 0, True),
    ],
)
def test_the_start_is_inside_and_the_end_outside(
    start: int, end: int, minute: int, is_open: bool
) -> None:
    assert (hours(start, end).closed_at_minute(minute) is None) is is_open


def test_the_last_second_before_the_end_is_still_inside() -> None:
    day = hours(480, 1320)
    assert day.closed(datetime(2026, 5, 1, 21, 59, 59, 999999, UTC)) is None
    assert day.closed(datetime(2026, 5, 1, 22, 0, tzinfo=UTC)) is Reason.OUTSIDE_ACTIVE_HOURS


def test_quiet_hours_are_told_apart_from_the_night() -> None:
    day = hours(480, 1320, quiet=Window(720, 780))
    noon = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
    assert day.closed(noon) is Reason.QUIET_HOURS
    assert day.next_opening(noon) == datetime(2026, 5, 1, 13, 0, tzinfo=UTC)


def test_an_opening_that_the_clock_skips_is_at_the_end_of_the_gap() -> None:
    # 2026-03-29 02:00 becomes 03:00 in Berlin, at 01:00 UTC.
    day = hours(150, 1320, "Europe/Berlin")
    assert day.next_opening(datetime(2026, 3, 29, 0, 10, tzinfo=UTC)) == datetime(
        2026, 3, 29, 1, 0, tzinfo=UTC
    )


def test_a_window_that_the_clock_skips_whole_opens_the_next_night() -> None:
    day = hours(130, 170, "Europe/Berlin")
    assert day.next_opening(datetime(2026, 3, 29, 0, 10, tzinfo=UTC)) == datetime(
        2026, 3, 30, 0, 10, tzinfo=UTC
    )


def test_a_window_that_the_clock_shows_twice_opens_twice() -> None:
    # 2026-10-25 03:00 becomes 02:00 in Berlin, at 01:00 UTC.
    day = hours(60, 150, "Europe/Berlin")
    assert day.next_opening(datetime(2026, 10, 25, 0, 40, tzinfo=UTC)) == datetime(
        2026, 10, 25, 1, 0, tzinfo=UTC
    )


def brute_force(day: Hours, after: datetime) -> datetime:
    if day.closed(after) is None:
        return after
    at = after.replace(second=0, microsecond=0)
    while day.closed(at) is not None:
        at += timedelta(minutes=1)
    return at


minutes = st.integers(0, 1439)
windows = st.tuples(minutes, st.integers(0, 1440)).filter(lambda w: w[0] != w[1] % 1440)
# Half of the instants lie in the days around a change of the clocks.
instants = st.one_of(
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)),
    st.sampled_from(
        [
            datetime(2026, 3, 28),
            datetime(2026, 10, 24),
            datetime(2026, 3, 7, 12),
            datetime(2026, 10, 31, 12),
            datetime(2026, 4, 4),
            datetime(2026, 10, 3),
            datetime(2011, 12, 29),
        ]
    ).flatmap(lambda d: st.timedeltas(timedelta(), timedelta(days=2)).map(lambda t: d + t)),
)


@given(windows, st.none() | windows, st.sampled_from(ZONES), instants)
def test_the_next_opening_is_the_first_minute_that_is_open(
    active: tuple[int, int], quiet: tuple[int, int] | None, zone: str, at: datetime
) -> None:
    day = hours(*active, zone, Window(*quiet) if quiet else None)
    at = at.replace(tzinfo=UTC)
    # At least two hours a day stay open, so that no clock change hides the opening for long.
    if sum(day.closed_at_minute(m) is None for m in range(1440)) < 120:
        return
    assert day.next_opening(at) == brute_force(day, at)
