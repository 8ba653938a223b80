"""When schedules come round; APScheduler's triggers are the calculators.

The trigger of a cron expression counts wall time, as if every day had 24 hours; the zone's rules
come on top, as in cron itself. An expression that fixes the hour comes once a day: at a time that the
clocks skip it comes when they have gone on by as much, at one that they repeat it comes the first
time. One that leaves the hour open comes whenever the clock fits, twice where the clock does so twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import MAXYEAR, UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from agentd.domain.durations import parse_zone
from agentd.domain.job import At, Cron, Every, Schedule
from agentd.errors import InvalidRequest

_EXAMPLE = 'write it like "0 9 * * 1-5": minute, hour, day of the month, month, day of the week'
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/([1-9]\d?))?", re.ASCII)
_NUMBER = re.compile(r"[\d*,/-]+|(?:[a-z]{3}(?:-[a-z]{3})?,?)+", re.ASCII)
_SHIFT = timedelta(hours=3)  # more than clocks are ever changed by
_INSTANT = timedelta(microseconds=1)
_HORIZON_YEARS = 9  # the longest wait for a 29 February
_LAST_YEAR = MAXYEAR - _HORIZON_YEARS - 1


class Triggers:
    """Answers what comes next, for any schedule."""

    def check(self, schedule: Schedule) -> None:
        """Raise InvalidRequest, with an example, for a schedule that cannot be understood."""
        if isinstance(schedule, Cron):
            _cron(schedule.expression, schedule.zone)

    def after(self, schedule: Schedule, moment: datetime) -> datetime | None:
        """The first time after `moment`; None when there is none within nine years."""
        match schedule:
            case At(at):
                return at if at > moment else None
            case Every(every, anchor):
                return anchor + ((moment - anchor) // every + 1) * every
            case Cron(expression, zone):
                return _cron(expression, zone).after(moment)


class _WallCron:
    """A cron expression in a zone. With days of the month and of the week both given, either fits."""

    def __init__(self, fields: tuple[str, ...], zone: ZoneInfo) -> None:
        minute, hour, day, month, weekday = fields
        self._zone = zone
        self._is_open = hour.startswith("*")
        pairs: tuple[tuple[str, str], ...] = ((day, weekday),)
        if not day.startswith("*") and not weekday.startswith("*"):
            pairs = ((day, "*"), ("*", weekday))
        self._triggers = tuple(_trigger(minute, hour, d, month, _weekdays(w)) for d, w in pairs)

    def after(self, moment: datetime) -> datetime | None:
        """The first instant after `moment` at which the clocks fit."""
        wall = moment.astimezone(self._zone).replace(tzinfo=UTC, fold=0)
        first = self._next(wall + _INSTANT)
        if first is None:
            return None
        plain = self._instants(first)
        if len(plain) == 1 and not self._is_odd(moment) and not self._is_odd(plain[0]):
            return plain[0]
        return self._searched(moment, wall)

    def _searched(self, moment: datetime, wall: datetime) -> datetime | None:
        """The same where the clocks change: walls are not in the order of their instants there."""
        best: datetime | None = None
        for slot in self._walls(wall - _SHIFT):
            if best is not None and slot > _wall(best, self._zone) + _SHIFT:
                break
            found = [at for at in self._instants(slot) if at > moment]
            best = min((*found, best) if best else found, default=None)
        return best

    def _walls(self, start: datetime) -> Iterator[datetime]:
        slot = self._next(start)
        while slot is not None:
            yield slot
            slot = self._next(slot + _INSTANT)

    def _next(self, start: datetime) -> datetime | None:
        if start.year > _LAST_YEAR:
            return None
        found: list[datetime] = []
        for trigger in self._triggers:
            # Without an end it would look through all the years that there are.
            trigger.end_date = start + timedelta(days=366 * _HORIZON_YEARS)
            slot = trigger.get_next_fire_time(None, start)
            if slot is not None:
                found.append(slot)
        return min(found, default=None)

    def _instants(self, slot: datetime) -> list[datetime]:
        """The instants that a wall time stands for, in order."""
        local = slot.replace(tzinfo=self._zone)
        early = local.astimezone(UTC)
        if not self._is_open:
            return [early]
        both = {early, local.replace(fold=1).astimezone(UTC)}
        return sorted(at for at in both if _wall(at, self._zone) == slot)

    def _is_odd(self, moment: datetime) -> bool:
        """Whether the clocks change near the moment."""
        offsets = {
            at.astimezone(self._zone).utcoffset() for at in (moment - _SHIFT, moment + _SHIFT)
        }
        return len(offsets) > 1


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=UTC, fold=0)


@lru_cache(maxsize=256)
def _cron(expression: str, zone: str) -> _WallCron:
    fields = tuple(expression.lower().split())
    try:
        if len(fields) != 5 or not all(_NUMBER.fullmatch(field) for field in fields):
            msg = "five fields are needed"
            raise ValueError(msg)
        return _WallCron(fields, ZoneInfo(parse_zone(zone) or "UTC"))
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{expression!r} is no cron expression", cure=_EXAMPLE) from None


def _trigger(minute: str, hour: str, day: str, month: str, weekday: str) -> CronTrigger:
    return CronTrigger(
        minute=minute, hour=hour, day=day, month=month, day_of_week=weekday, timezone=UTC
    )


def _weekdays(field: str) -> str:
    """A weekday field with names for numbers: cron counts from Sunday, APScheduler from Monday."""
    if field == "*":
        return field
    days: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(field)
        start, end, stride = match.groups()
        low, high = (0, 6) if start == "*" else (_weekday(start), _weekday(end or start))
        if end is None and stride and start != "*":
            high = 6
        if low > high:
            raise ValueError(field)
        days.update(day % 7 for day in range(low, high + 1, int(stride or 1)))
    return ",".join(_DAYS[day] for day in sorted(days))


def _weekday(name: str) -> int:
    if name in _DAYS:
        return _DAYS.index(name)
    number = int(name)
    if number > 7:
        raise ValueError(name)
    return number
