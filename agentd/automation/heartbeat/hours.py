"""The hours of the day in which a beat may run; pure.

A window is a span of wall-clock minutes in a zone, start inclusive, end exclusive, over midnight
when the end is before the start. On the nights when clocks change, a minute that the clock skips is
not there and a minute it shows twice counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agentd.core.beat import Reason
from agentd.core.times import format_time

_DAY_MINUTES = 24 * 60
_MINUTE = timedelta(minutes=1)
# Each step ends at a start of a window or a change of the clocks; a year's worth is never needed.
_STEPS = 64


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the day, in minutes since midnight: `start` 0…1439, `end` 0…1440, never equal."""

    start: int
    end: int

    def __contains__(self, minute: int) -> bool:
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        return f"{format_time(self.start)}-{format_time(self.end)}"


@dataclass(frozen=True, slots=True)
class Hours:
    """When beats may run: inside `active` and outside `quiet`."""

    active: Window
    quiet: Window | None
    zone: ZoneInfo

    def __str__(self) -> str:
        quiet = "" if self.quiet is None else f" without {self.quiet}"
        return f"{self.active}{quiet}"

    def closed(self, at: datetime) -> Reason | None:
        """Why no beat may run at this instant; None if it may."""
        return self.closed_at_minute(self._minute(at))

    def closed_at_minute(self, minute: int) -> Reason | None:
        """The same for a minute of the day."""
        if minute not in self.active:
            return Reason.OUTSIDE_ACTIVE_HOURS
        if self.quiet is not None and minute in self.quiet:
            return Reason.QUIET_HOURS
        return None

    def next_opening(self, after: datetime) -> datetime:
        """`after` itself when a beat may run then, else the first instant behind it when one may."""
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
        """The next instant at which a window may open: by its start, or by a change of the clocks."""
        edges = [self.active.start]
        if self.quiet is not None:
            edges.append(self.quiet.end % _DAY_MINUTES)
        minute = self._minute(at)
        wait = min((edge - minute - 1) % _DAY_MINUTES + 1 for edge in edges)
        return self._first_shift(at, at + wait * _MINUTE)

    def _first_shift(self, start: datetime, end: datetime) -> datetime:
        """The minute in (start, end] at which the zone's offset changes, or `end` if it does not."""
        before = start.astimezone(self.zone).utcoffset()
        if end.astimezone(self.zone).utcoffset() == before:
            return end
        low, high = 0, int((end - start) / _MINUTE)
        while high - low > 1:
            middle = (low + high) // 2
            shifted = (start + middle * _MINUTE).astimezone(self.zone).utcoffset() != before
            low, high = (low, middle) if shifted else (middle, high)
        return start + high * _MINUTE


# When the next beat is due; pure.
#
# Slots are `interval` apart and anchored on the persisted due time, so that a restart neither moves
# nor repeats them. Everything is compared as instants: a change of the clocks moves nothing.

# A due time this much too far ahead is an ordinary step of the clock, not worth moving a slot.
_SLACK = timedelta(minutes=1)
_SPACING = timedelta(minutes=1)  # what an item brings forward keeps this distance


def settle(next_due: datetime | None, now: datetime, interval: timedelta, hours: Hours) -> datetime:
    """The due time to go by: the first one ever is an interval away, and one that lies further ahead
    than any slot can (the clock was set back, the interval was shortened) is pulled back.
    """
    limit = now + interval
    if next_due is None:
        return limit
    if hours.closed(now) is not None:
        limit = max(limit, hours.next_opening(now))
    return limit if next_due > limit + _SLACK else next_due


def slot(next_due: datetime, now: datetime, interval: timedelta) -> datetime:
    """The newest slot that has come, for `now >= next_due`: what was missed is one beat, not many."""
    return next_due + (now - next_due) // interval * interval


def following(due: datetime, now: datetime, interval: timedelta) -> datetime:
    """The first slot after both `due` and `now`."""
    return due + max(1, (now - due) // interval + 1) * interval


def spacing(interval: timedelta) -> timedelta:
    """How long after a beat a dated item may bring the next one: a minute."""
    return min(interval, _SPACING)


def pull_forward(
    next_due: datetime, item: datetime | None, earliest: datetime, hours: Hours
) -> datetime:
    """`next_due`, or the earlier time at which a dated item comes due and a beat may run, which is
    not before `earliest`.
    """
    if item is None:
        return next_due
    return min(next_due, hours.next_opening(max(item, earliest)))
