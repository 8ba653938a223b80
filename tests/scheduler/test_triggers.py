"""When schedules come round, against a count of every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.errors import InvalidRequest
from agentd.core.job import At, Cron, Every

TRIGGERS = SchedulerTriggers()
MINUTE = timedelta(minutes=1)
BERLIN = "Europe/Berlin"
# Nights on which the clocks of the zone change, in UTC.
NIGHTS = {
    BERLIN: (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "America/New_York": (datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)),
    "Australia/Lord_Howe": (
        datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
        datetime(2026, 4, 4, 15, tzinfo=UTC),
    ),
    "America/Santiago": (datetime(2026, 9, 6, 4, tzinfo=UTC), datetime(2026, 4, 5, 3, tzinfo=UTC)),
    "UTC": (datetime(2026, 6, 1, tzinfo=UTC),),
}


def times(schedule: Cron, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    at = TRIGGERS.after(schedule, start)
    while at is not None and at <= end:
        found.append(at)
        at = TRIGGERS.after(schedule, at)
    return found


def fits(expression: str, wall: datetime) -> bool:
    minute, hour, day, month, weekday = expression.split()
    days = (in_field(day, wall.day), in_field(weekday, wall.isoweekday() % 7))
    either = "*" not in (day[0], weekday[0])
    return (
        in_field(minute, wall.minute)
        and in_field(hour, wall.hour)
        and in_field(month, wall.month)
        and (any(days) if either else all(days))
    )


def in_field(field: str, value: int) -> bool:
    for part in field.split(","):
        span, _, stride = part.partition("/")
        low, _, high = span.partition("-")
        first = 0 if span == "*" else int(low)
        last = 59 if span == "*" else int(high or low)
        if first <= value <= last and (value - first) % int(stride or 1) == 0:
            return True
    return False


def counted(schedule: Cron, start: datetime, end: datetime) -> list[datetime]:
    """All slots, by looking at each minute: those that the clocks show for an open hour, and each
    wall minute once for a fixed one.
    """
    zone = ZoneInfo(schedule.zone)
    minutes = range(int((end - start) / MINUTE) + 240)
    instants = [start - 120 * MINUTE + n * MINUTE for n in minutes]
    if schedule.expression.split()[1].startswith("*"):
        found = {at for at in instants if fits(schedule.expression, at.astimezone(zone))}
    else:
        wall = instants[0].astimezone(zone).replace(tzinfo=None)
        walls = [wall + n * MINUTE for n in minutes]
        found = {
            at.replace(tzinfo=zone).astimezone(UTC) for at in walls if fits(schedule.expression, at)
        }
    return sorted(at for at in found if start < at <= end)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    lists = st.lists(number, min_size=1, max_size=3, unique=True).map(
        lambda values: ",".join(map(str, sorted(values)))
    )
    spans = st.tuples(number, number).map(lambda ab: f"{min(ab)}-{max(ab)}")
    return st.one_of(st.just("*"), lists, spans)


MINUTES = st.one_of(st.just("*/15"), st.just("*/7"), field(0, 59))
HOURS = st.one_of(st.just("*"), st.just("1-4"), field(0, 23))
EXPRESSIONS = st.tuples(MINUTES, HOURS, st.just("*"), st.just("*"), field(0, 6)).map(" ".join)


@settings(max_examples=20, deadline=None)
@given(
    expression=EXPRESSIONS,
    night=st.sampled_from([(zone, at) for zone, nights in NIGHTS.items() for at in nights]),
    offset=st.integers(-300, 300),
)
def test_the_nights_on_which_clocks_change_are_counted_right(expression, night, offset):
    zone, at = night
    schedule = Cron(expression, zone)
    start = at + offset * MINUTE - timedelta(hours=3)
    end = start + timedelta(hours=9)
    assert times(schedule, start, end) == counted(schedule, start, end)


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("30 2 * * *", "2026-03-29T03:30"),  # skipped: as much later
        ("0 3 * * *", "2026-03-29T03:00"),
        ("30 * * * *", "2026-03-29T00:30"),
        ("0 0 29 * 1", "2026-03-30T00:00"),  # the 29th has begun; Monday fits too
        ("0 0 1 1 *", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 12 * * 7", "2026-03-29T12:00"),
        ("0 12 * * 0", "2026-03-29T12:00"),
        ("0 12 * * mon-fri", "2026-03-30T12:00"),
        ("0 12 * * 5-7", "2026-03-29T12:00"),
        ("0 12 * * */3", "2026-03-29T12:00"),  # Sunday, Wednesday, Saturday
        ("5/20 0 * * *", "2026-03-29T00:05"),
        ("0 9 * JAN *", "2027-01-01T09:00"),
    ],
)
def test_expressions_are_read_as_cron_reads_them(expression, first):
    start = datetime(2026, 3, 29, tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
    at = TRIGGERS.after(Cron(expression, BERLIN), start)
    assert f"{at.astimezone(ZoneInfo(BERLIN)):%Y-%m-%dT%H:%M}" == first


def test_a_repeated_hour_comes_twice_only_where_the_hour_is_open():
    night = datetime(2026, 10, 24, 22, tzinfo=UTC)
    end = night + timedelta(hours=5)
    assert len(times(Cron("30 2 * * *", BERLIN), night, end)) == 1
    assert len(times(Cron("30 * * * *", BERLIN), night, end)) == 5


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "61 * * * *",
        "a * * * *",
        "* * * * 8",
        "* * last * *",
        "* * * * 5-1",
        "*/0 * * * *",
        "? * * * *",
        "1,,2 * * * *",
        "² * * * *",
        "@daily",
        "-1 * * * *",
    ],
)
def test_what_is_no_expression_is_refused_with_an_example(expression):
    with pytest.raises(InvalidRequest) as refused:
        TRIGGERS.check(Cron(expression, "UTC"))
    assert '"0 9 * * 1-5"' in refused.value.cure


def test_an_expression_without_an_end_is_refused_and_not_repeated():
    whole = ",".join(str(minute) for minute in range(60))
    TRIGGERS.check(Cron(f"{whole} {','.join(map(str, range(24)))} * * 0,1,2,3,4,5,6", "UTC"))
    with pytest.raises(InvalidRequest) as refused:
        TRIGGERS.check(Cron(f"{','.join([whole] * 500)} * * * *", "UTC"))
    assert len(refused.value.message) < 100


def test_a_day_that_never_comes_is_looked_for_in_nine_years_only():
    assert TRIGGERS.after(Cron("0 0 31 2 *", "UTC"), datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert TRIGGERS.after(Cron("* * * * *", "UTC"), datetime(9995, 1, 1, tzinfo=UTC)) is None


def test_instants_and_intervals():
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    assert TRIGGERS.after(At(noon), noon - MINUTE) == noon
    assert TRIGGERS.after(At(noon), noon) is None
    every = Every(timedelta(hours=5), noon)
    assert TRIGGERS.after(every, noon) == noon + timedelta(hours=5)
    assert TRIGGERS.after(every, noon + timedelta(hours=4)) == noon + timedelta(hours=5)
    # A clock that was wrong when the job was made keeps it from nothing.
    assert TRIGGERS.after(every, noon - timedelta(hours=6)) == noon - timedelta(hours=5)
