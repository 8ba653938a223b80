"""The hours of the day in which a beat may run, and the due times of beats. Pure.

A window is a span of wall-clock minutes in a zone, start inclusive, end exclusive; it extends over
midnight if the end is before the start. In a night with a clock change, minutes that the clock
skips do not occur, and minutes that it shows twice occur twice.

Due times, the slots, are `interval` apart, counted from the persisted one, so a restart neither
moves nor repeats them. All times are compared as instants, so a clock change moves no slot.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from agentd.core.beat import Reason
from agentd.core.times import format_time

_DAY_MINUTES = 24 * 60
_MINUTE = timedelta(minutes=1)
# Each step ends at the start of a window or at a clock change; far fewer steps than this suffice.
_STEPS = 64
# A due time too far ahead by no more than this comes from a small clock correction: keep the slot.
_SLACK = timedelta(minutes=1)
_SPACING = timedelta(minutes=1)  # least time between a beat and one moved forward by an item


class Window(Struct, frozen=True):
    """A part of the day, in minutes since midnight: `start` 0…1439, `end` 0…1440, never equal."""

    start: int
    end: int

    def __contains__(self, minute: int) -> bool:
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        return f"{format_time(self.start)}-{format_time(self.end)}"


class Hours(Struct, frozen=True):
    """When beats may run: inside `active` and outside `quiet`."""

    active: Window
    quiet: Window | None
    zone: ZoneInfo

    def __str__(self) -> str:
        quiet = "" if self.quiet is None else f" without {self.quiet}"
        return f"{self.active}{quiet}"

    def closed(self, at: datetime) -> Reason | None:
        """Return why no beat may run at this instant; None if one may."""
        return self.closed_at_minute(self._minute(at))

    def closed_at_minute(self, minute: int) -> Reason | None:
        """Return what `closed` returns, for a minute of the day."""
        if minute not in self.active:
            return Reason.OUTSIDE_ACTIVE_HOURS
        if self.quiet is not None and minute in self.quiet:
            return Reason.QUIET_HOURS
        return None

    def next_opening(self, after: datetime) -> datetime:
        """Return `after` if a beat may run then, else the first instant after it at which one may;
        in UTC.
        """
        at = after.astimezone(UTC)
        if self.closed(at) is None:
            return at
        at = at.replace(second=0, microsecond=0)
        for _ in range(_STEPS):
            at = self._next_change(at)
            if self.closed(at) is None:
                break
        return at

    def _minute(self, at: datetime) -> int:
        local = at.astimezone(self.zone)
        return local.hour * 60 + local.minute

    def _next_change(self, at: datetime) -> datetime:
        """Return the next instant at which the hours may open: the start of a window, or a clock
        change.
        """
        edges = [self.active.start]
        if self.quiet is not None:
            edges.append(self.quiet.end % _DAY_MINUTES)
        minute = self._minute(at)
        wait = min((edge - minute - 1) % _DAY_MINUTES + 1 for edge in edges)
        return self._first_shift(at, at + wait * _MINUTE)

    def _first_shift(self, start: datetime, end: datetime) -> datetime:
        """Return the minute in (start, end] at which the zone's offset changes; `end` if it does
        not.
        """
        before = start.astimezone(self.zone).utcoffset()
        if end.astimezone(self.zone).utcoffset() == before:
            return end
        low, high = 0, int((end - start) / _MINUTE)
        while high - low > 1:
            middle = (low + high) // 2
            shifted = (start + middle * _MINUTE).astimezone(self.zone).utcoffset() != before
            low, high = (low, middle) if shifted else (middle, high)
        return start + high * _MINUTE


def settle(next_due: datetime | None, now: datetime, interval: timedelta, hours: Hours) -> datetime:
    """Return the due time that follows from the stored one: one interval from now if none is
    stored. A due time further ahead than any slot can be (the clock was set back, or the interval
    was shortened) is moved forward to the latest possible slot, in closed hours to their end.
    """
    limit = now + interval
    if next_due is None or next_due <= limit + _SLACK:
        return next_due or limit
    return limit if hours.closed(now) is None else max(limit, hours.next_opening(now))


def slot(next_due: datetime, now: datetime, interval: timedelta) -> datetime:
    """Return the newest slot that has come, for `now >= next_due`: missed slots lead to one beat,
    not to many.
    """
    return next_due + (now - next_due) // interval * interval


def following(due: datetime, now: datetime, interval: timedelta) -> datetime:
    """Return the first slot after both `due` and `now`."""
    return due + max(1, (now - due) // interval + 1) * interval


def spacing(interval: timedelta) -> timedelta:
    """Return the least time between a beat and one that a dated item brings forward: a minute, or
    the interval if that is shorter.
    """
    return min(interval, _SPACING)


def pull_forward(
    next_due: datetime, item: datetime | None, earliest: datetime, hours: Hours
) -> datetime:
    """Return when the next beat is due: `next_due`, or the earlier time, not before `earliest`, at
    which a dated item is due and a beat may run.
    """
    if item is None:
        return next_due
    return min(next_due, hours.next_opening(max(item, earliest)))
