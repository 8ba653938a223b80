"""Computes the next slot of a job. Pure.

Slots are instants that follow from the schedule alone. Used slots are known by their rows, so a
clock that is set back repeats none, and none is lost to a clock that was ahead for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from agentd.core.job import Job, JobStep, Misfire, MissedSlots

After = Callable[[datetime], datetime | None]
"""The first slot of a schedule after an instant; None when there is none."""

_INSTANT = timedelta(microseconds=1)  # the resolution of datetime
_FIRST_PAUSE, _MOST_PAUSES = timedelta(minutes=2), 9  # doubling: 17 hours in all
_EARLIEST = datetime.min.replace(tzinfo=UTC) + timedelta(days=2)


class Rules(Struct, frozen=True):
    """How late a slot may run under the misfire rule "skip" (`grace`), and how many late slots may
    run under "all" (`most`).
    """

    grace: timedelta
    most: int


def step(job: Job, after: After, now: datetime, rules: Rules) -> JobStep:
    """Return what to do now with a job that is due.

    A step with a due slot is to be run, and then the job is to be checked again; one without only
    records missed slots.
    """
    assert job.next_due is not None
    misfire = job.what.misfire
    recent = _recent(after, job.next_due, now, (rules.most if misfire is Misfire.ALL else 1) + 1)
    runnable = recent[-rules.most :] if misfire is Misfire.ALL else recent[-1:]
    if misfire is Misfire.SKIP and recent[-1] < now - rules.grace:
        return JobStep(job.id, None, after(now), MissedSlots(job.next_due, recent[-1]))
    due = runnable[0]
    before = [slot for slot in recent if slot < due]
    missed = MissedSlots(job.next_due, before[-1]) if before else None
    return JobStep(job.id, due, after(due), missed)


def earliest_unused(
    next_due: datetime | None, after: After, now: datetime, used: AbstractSet[datetime]
) -> datetime | None:
    """Return the due time after the clock may have been set back: `next_due`, or the next unused
    slot if that is earlier or `next_due` is None. None if there is neither.
    """
    if next_due is not None and next_due <= now:
        return next_due
    slot = after(now)
    while slot is not None and slot in used:
        slot = after(slot)
    return min((at for at in (slot, next_due) if at is not None), default=None)


def again(failed: int, now: datetime) -> datetime | None:
    """Return when to repeat a question with a single date that was not answered, after `failed`
    earlier tries. The first pause is two minutes, each further one twice as long; None after the
    ninth.
    """
    return now + _FIRST_PAUSE * 2**failed if failed < _MOST_PAUSES else None


def upcoming(next_due: datetime | None, after: After, count: int) -> tuple[datetime, ...]:
    """Return the next `count` slots, beginning with `next_due`."""
    found: list[datetime] = []
    while next_due is not None and len(found) < count:
        found.append(next_due)
        next_due = after(next_due)
    return tuple(found)


def _recent(after: After, first: datetime, now: datetime, count: int) -> list[datetime]:
    """Return the newest slots from the slot `first` to `now`, oldest first: `count` of them, or all
    there are.

    Searches back in growing spans, since years may have gone by.
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
