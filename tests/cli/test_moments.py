"""Moments in words: what is understood, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from agentd.app.cli.jobs import parse_moment
from agentd.core.errors import InvalidRequest

BERLIN = ZoneInfo("Europe/Berlin")
SATURDAY = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)  # ten o'clock in Berlin


@pytest.fixture
def _dates() -> None:
    pytest.importorskip("dateparser", reason="the extra dates is not installed (EXTRAS=dates)")


@pytest.mark.usefixtures("_dates")
@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("tomorrow 9am", "2026-11-29T09:00:00+01:00"),
        ("tomorrow at 21:30", "2026-11-29T21:30:00+01:00"),
        ("friday at 18:30", "2026-12-04T18:30:00+01:00"),
        ("9am", "2026-11-29T09:00:00+01:00"),
        ("3 May 2027 9:00", "2027-05-03T09:00:00+02:00"),
        ("demain à 9h", "2026-11-29T09:00:00+01:00"),
        ("monday 9am EST", "2026-11-30T15:00:00+01:00"),
        ("december 24 00:00", "2026-12-24T00:00:00+01:00"),
    ],
)
def test_what_is_understood_is_the_next_such_moment(words: str, at: str) -> None:
    found = parse_moment(words, SATURDAY, BERLIN)
    assert (found.isoformat(), found.tzinfo) == (at, BERLIN)


@pytest.mark.usefixtures("_dates")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("gibberish", "means no date"),
        ("x" * 5000, "means no date"),
        ("tomorrow", "names no time of day"),
        ("friday", "names no time of day"),
        ("1", "names no time of day"),
        ("in 2 hours", "names no time of day"),
        ("yesterday 9am", "is past"),
    ],
)
def test_what_is_no_moment_to_come_is_refused_with_a_right_example(words: str, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told) as caught:
        parse_moment(words, SATURDAY, BERLIN)
    assert '"tomorrow 9am"' in caught.value.cure or "2026-11-29 09:00" in caught.value.cure
    assert len(caught.value.message) < 200


def test_without_the_extra_it_says_what_to_install() -> None:
    with pytest.raises(InvalidRequest, match="no date with a time") as caught:
        parse_moment("tomorrow 9am", SATURDAY, BERLIN, lambda name: None)
    assert "agentd-daemon[dates]" in caught.value.cure
