"""When the next beat is due; pure.

Slots are `interval` apart and anchored on the persisted due time, so that a restart neither moves
nor repeats them. Everything is compared as instants: a change of the clocks moves nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from agentd.heartbeat.hours import Hours

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


def pulled(next_due: datetime, item: datetime | None, earliest: datetime, hours: Hours) -> datetime:
    """`next_due`, or the earlier time at which a dated item comes due and a beat may run, which is
    not before `earliest`.
    """
    if item is None:
        return next_due
    return min(next_due, hours.next_opening(max(item, earliest)))
