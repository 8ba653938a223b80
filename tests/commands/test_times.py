"""Times in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentd.interfaces.commands.plain import TimeFormatter, span
from agentd.testing import FakeClock


@pytest.fixture
def times() -> TimeFormatter:
    return TimeFormatter(FakeClock(zone="Pacific/Auckland"))  # it is 2026-11-22 01:00 there


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-11-21T11:00:00+00:00", "today 00:00"),
        ("2026-11-21T10:59:59.9Z", "yesterday 23:59"),
        ("2026-11-19T12:00:00+01:00", "2026-11-20 00:00"),
        ("2026-11-21T12:25:30+00:00", "today 01:25, in 25 min"),
        ("2026-11-22T12:01:00+00:00", "tomorrow 01:01, in 1 d"),
        ("no time", "no time"),
    ],
)
def test_a_time_is_told_by_the_owners_day(times: TimeFormatter, at: str, words: str) -> None:
    assert times.short(at) == words


def test_an_answer_is_read_to_its_depth(times: TimeFormatter) -> None:
    answer = {"runs": [{"at": "2026-11-21T12:00:00+00:00", "text": "quiet", "tokens": 3}]}
    assert times.read(answer) == {"runs": [{"at": "today 01:00", "text": "quiet", "tokens": 3}]}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (61, "1 min 1 s"), (301, "5 min"), (3600, "1 h"), (90000, "1 d 1 h")],
)
def test_a_duration_is_told_by_its_largest_units(seconds: float, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words
