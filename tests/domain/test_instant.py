"""Times that are given from outside: only those that every part of agentd can reckon with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agentd.core.times import read_instant, within_calendar
from agentd.storage.codec import moment

ZONES = [ZoneInfo(name) for name in ("Pacific/Kiritimati", "America/New_York", "Etc/GMT+12")]


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-22", "2026-11-21T10:00:00+00:00"),
        ("2026-11-22T09:00+02:00", "2026-11-22T07:00:00+00:00"),
        ("2026-11-22T09:00:00Z", "2026-11-22T09:00:00+00:00"),
        ("1000-01-01T00:00Z", "1000-01-01T00:00:00+00:00"),
        ("9000-12-31T23:59Z", "9000-12-31T23:59:00+00:00"),
    ],
)
def test_a_time_is_in_utc_and_one_without_an_offset_of_the_zone(text, utc):
    assert read_instant(text, ZONES[0]).isoformat() == utc


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01",
        "0001-01-01T00:00+14:00",
        "0999-12-31T23:59Z",
        "1000-01-01T00:00+05:00",
        "9001-01-01",
        "9999-12-31T23:59:59-05:00",
        "tomorrow",
        "",
        None,
        3,
    ],
)
def test_what_is_no_time_or_of_no_year_that_can_be_meant_is_named(text):
    with pytest.raises(ValueError, match=r"is no time|is not between the years"):
        read_instant(text)


@pytest.mark.parametrize(
    "stored",
    ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00", "2026-11-22T09:00:00+00:00"],
)
def test_what_was_stored_before_has_a_time_in_every_zone(stored):
    at = moment(stored)
    for zone in ZONES:
        assert read_instant(at.astimezone(zone).isoformat()) == at
    assert at + timedelta(days=3650) > at - timedelta(days=3650)


def test_a_time_that_every_zone_has_stays_as_it_is():
    at = datetime(2024, 2, 29, 12, tzinfo=UTC)
    assert within_calendar(at) is at
    assert within_calendar(at.replace(year=9996)).year == 9000
