"""The hours of the day in which a beat may run; pure.

A window is a span of wall-clock minutes in a zone, start inclusive, end exclusive, over midnight
when the end is before the start. On the nights when clocks change, a minute that the clock skips is
not there and a minute it shows twice counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agentd.domain.beat import Reason

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


@dataclass(frozen=True, slots=True)
class Hours:
    """When beats may run: inside `active` and outside `quiet`."""

    active: Window
    quiet: Window | None
    zone: ZoneInfo

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
