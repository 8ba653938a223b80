"""Which slot of a job is next; pure.

Slots are instants that follow from the schedule alone. What has been used is known by its row, so a
clock that is set back repeats nothing, and one that was set ahead costs nothing once it is right.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agentd.core.job import Job, Misfire, Missed, Step

After = Callable[[datetime], datetime | None]
"""The first slot of a schedule after an instant; None when there is none."""

_INSTANT = timedelta(microseconds=1)  # the finest step of our times
_FIRST_PAUSE, _MOST_PAUSES = timedelta(minutes=2), 9  # 17 hours in all
_EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as late, and how many late slots may run at most."""

    grace: timedelta
    most: int


def step(job: Job, after: After, now: datetime, rules: Rules) -> Step:
    """What to do now with a job that is due.

    A step with a slot is to be run and followed by another look, one without only records what was
    missed.
    """
    assert job.next_due is not None
    misfire = job.what.misfire
    recent = _recent(after, job.next_due, now, (rules.most if misfire is Misfire.ALL else 1) + 1)
    runnable = recent[-rules.most :] if misfire is Misfire.ALL else recent[-1:]
    if misfire is Misfire.SKIP and recent[-1] < now - rules.grace:
        return Step(job.id, None, after(now), Missed(job.next_due, recent[-1]))
    due = runnable[0]
    before = [slot for slot in recent if slot < due]
    missed = Missed(job.next_due, before[-1]) if before else None
    return Step(job.id, due, after(due), missed)


def earliest_unused(
    next_due: datetime | None, after: After, now: datetime, used: AbstractSet[datetime]
) -> datetime | None:
    """The due time to go by when the clock may have been set back: the next slot that is not used
    yet, if it comes earlier, or there seemed to be none; None if there is none.
    """
    if next_due is not None and next_due <= now:
        return next_due
    slot = after(now)
    while slot is not None and slot in used:
        slot = after(slot)
    return min((at for at in (slot, next_due) if at is not None), default=None)


def again(failed: int, now: datetime) -> datetime | None:
    """When a question with one date that was not answered is asked once more: after pauses that double, for
    the better part of a day; None after the last of them. `failed` is how often it had been tried before.
    """
    return now + _FIRST_PAUSE * 2**failed if failed < _MOST_PAUSES else None


def upcoming(next_due: datetime | None, after: After, count: int) -> tuple[datetime, ...]:
    """The next `count` slots."""
    found: list[datetime] = []
    while next_due is not None and len(found) < count:
        found.append(next_due)
        next_due = after(next_due)
    return tuple(found)


def _recent(after: After, first: datetime, now: datetime, count: int) -> list[datetime]:
    """The newest slots from `first`, a slot, to `now`: `count` of them, or all there are.

    Looks back in growing spans, since years may have gone by.
    """
    span = timedelta(minutes=count)
    while True:
        is_whole = span >= now - first
        slot = first if is_whole else after(max(now - span, _EARLIEST))
        found: list[datetime] = []
        while slot is not None and slot <= now:
            found.append(slot)
            slot = after(slot)
        if is_whole or len(found) >= count:
            return found[-count:]
        span *= 4
