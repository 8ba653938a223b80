"""Times that are given from outside: only those that every part of agentd can reckon with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agentd.core.times import read_instant, retry_after, within_calendar
from agentd.storage.codec import moment

ZONES = [ZoneInfo(name) for name in ("Pacific/Kiritimati", "America/New_York", "Etc/GMT+12")]


DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
NOW = datetime(2026, 10, 21, 7, 27, 30, tzinfo=UTC)
SPENT = {"x-ratelimit-remaining": "0"}


@pytest.mark.parametrize(
    ("headers", "now", "seconds"),
    [
        ({"retry-after": "2.5"}, None, 2.5),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2026 07:27:50 GMT"}, NOW, 10.0),
        ({"retry-after": DATE}, NOW, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 -0000"}, NOW, 30.0),
        ({"retry-after": DATE}, None, None),
        ({"retry-after": DATE, "date": "today"}, None, None),
        ({"retry-after": "inf"}, NOW, None),
        ({"retry-after": "1e300"}, NOW, 365 * 86_400.0),
        ({"retry-after": "2", "retry-after-ms": "1500"}, None, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, None, 2.0),
        ({**SPENT, "x-ratelimit-reset": "1792567680000"}, NOW, 30.0),
        ({**SPENT, "x-ratelimit-reset": "1792567680"}, NOW, 30.0),
        ({**SPENT, "x-ratelimit-reset": "1792567680"}, None, None),
        ({**SPENT, "x-ratelimit-reset": "30"}, NOW, None),
        ({**SPENT, "x-ratelimit-reset": "1e300"}, NOW, None),
        ({"x-ratelimit-remaining": "3", "x-ratelimit-reset": "1792567680"}, NOW, None),
        ({}, NOW, None),
    ],
)
def test_a_response_asks_to_wait_for_seconds_or_until_a_date(headers, now, seconds):
    assert retry_after(headers, now) == seconds


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
