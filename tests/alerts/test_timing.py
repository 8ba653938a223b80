"""When a sink is handed what waits for it; pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.automation.alerts.alert_settings import SinkSettings
from agentd.automation.alerts.timing import SinkTiming, as_one, urgent_first
from agentd.core.alert import Alert, AlertSeverity, Delivery

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=BERLIN)
HOUR = timedelta(hours=1)


def waiting(*ages: float, attempts: int = 0, now: datetime = NOON) -> list[Delivery]:
    """Deliveries of alerts that are so many minutes old."""
    return [
        Delivery(
            Alert(number, now - timedelta(minutes=age), f"text {number}", "test"), "phone", attempts
        )
        for number, age in enumerate(ages, start=1)
    ]


def timing(start: str = "", end: str = "", digest: str = "0s") -> SinkTiming:
    table = {"quiet_hours_start": start, "quiet_hours_end": end, "digest": digest}
    return SinkSettings.model_validate(table).timing(BERLIN)


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("21:59", None),
        ("22:00", "2026-05-05T07:00+02:00"),
        ("23:30", "2026-05-05T07:00+02:00"),
        ("06:59", "2026-05-04T07:00+02:00"),
        ("07:00", None),
    ],
)
def test_the_quiet_hours_end_where_they_say(at: str, until: str | None) -> None:
    hour, minute = map(int, at.split(":"))
    now = NOON.replace(hour=hour, minute=minute)
    held = timing("22:00", "07:00").hold_until(waiting(0, now=now), now)
    assert held == (None if until is None else datetime.fromisoformat(until))


def test_a_digest_is_ready_so_long_after_its_first_alert() -> None:
    fifteen = timing(digest="15m")
    assert fifteen.hold_until(waiting(0), NOON) == NOON + timedelta(minutes=15)
    assert fifteen.hold_until(waiting(10, 0), NOON) == NOON + timedelta(minutes=5)
    assert fifteen.hold_until(waiting(15, 0), NOON) is None


def test_what_was_tried_once_is_gathered_no_longer_but_keeps_the_quiet_hours() -> None:
    assert timing(digest="15m").hold_until(waiting(0, attempts=1), NOON) is None
    night = NOON.replace(hour=23)
    quiet = timing("22:00", "07:00", "15m")
    assert quiet.hold_until(waiting(0, attempts=1, now=night), night) is not None


def test_a_clock_that_was_set_back_keeps_nothing_for_longer_than_the_digest() -> None:
    future = waiting(-600)
    assert timing(digest="15m").hold_until(future, NOON) == NOON + timedelta(minutes=15)


def test_a_sink_without_wishes_is_handed_everything_at_once() -> None:
    assert not timing().gathers
    assert timing().hold_until(waiting(0), NOON) is None


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.integers(0, 240),
)
def test_what_is_held_is_held_to_come_and_not_for_ever(
    now: datetime, start: int, end: int, digest: int
) -> None:
    if start == end:
        return
    table = {"quiet_hours_start": start, "quiet_hours_end": end, "digest": f"{digest}m"}
    one = SinkSettings.model_validate(table).timing(BERLIN)
    until = one.hold_until(waiting(0, now=now), now)
    if until is not None:
        assert now < until <= now + timedelta(hours=26)
        later = one.hold_until(waiting(0, now=now), until)
        assert later is None or one.quiet is not None


def test_several_are_one_text_with_the_time_of_each_and_marks_of_their_own() -> None:
    first, second = (one.alert for one in waiting(60, 0))
    tainted = Alert(3, NOON, "Pay now", "job", tainted=True, severity=AlertSeverity.WARNING)
    deliveries = [Delivery(alert, "phone", 0) for alert in (second, tainted, first)]
    merged = as_one(deliveries, BERLIN)
    assert merged.told == (
        "3 alerts\n\nMon 11:00 text 1\n\nMon 12:00 text 2\n\n"
        "Mon 12:00 [may come from outside] Pay now"
    )
    assert (merged.id, merged.severity) == (3, AlertSeverity.WARNING)
    assert as_one(deliveries[:1], BERLIN) is second


def test_urgent_ones_are_told_apart() -> None:
    plain = waiting(0)
    urgent = [Delivery(Alert(9, NOON, "now", "job", severity=AlertSeverity.URGENT), "phone", 0)]
    assert urgent_first([*plain, *urgent]) == (urgent, plain)


def test_severities_have_an_order() -> None:
    reaching = [
        (one, least) for one in AlertSeverity for least in AlertSeverity if one.reaches(least)
    ]
    assert len(reaching) == 6
    assert AlertSeverity.URGENT.reaches(AlertSeverity.WARNING)
    assert not AlertSeverity.INFO.reaches(AlertSeverity.WARNING)
