"""APScheduler behind agentd's ports: computes the times of schedules, and wakes the parts that have
something due.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from datetime import MAXYEAR, UTC, datetime, timedelta
from functools import lru_cache
from types import TracebackType
from typing import Protocol, Self
from zoneinfo import ZoneInfo

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
from msgspec import Struct

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.health import Problem
from agentd.core.job import At, Cron, Every, Schedule
from agentd.core.ports import Clock
from agentd.core.times import parse_zone

log = structlog.get_logger()

_EXAMPLE = 'write it like "0 9 * * 1-5": minute, hour, day of the month, month, day of the week'
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/([1-9]\d?))?", re.ASCII)
_NUMBER = re.compile(r"[\d*,/-]+|(?:[a-z]{3}(?:-[a-z]{3})?,?)+", re.ASCII)
_LONGEST_EXPRESSION = 500  # characters; all minutes, hours and days in full take fewer
_SHIFT = timedelta(hours=3)  # more than any clock change of a zone
_INSTANT = timedelta(microseconds=1)
_HORIZON_YEARS = 9  # the longest wait for a 29 February
_LAST_YEAR = MAXYEAR - _HORIZON_YEARS - 1
_LONGEST_SLEEP = 60.0
_LATE = 3 * _LONGEST_SLEEP
_JUMP = timedelta(seconds=1)  # far more than a clock drifts, or is slewed, between two checks
# Only one wake runs at a time, but APScheduler counts a finished one until the loop's next round. A
# poke at that moment must not be dropped as one instance too many: the next run would be in a day.
_ENDING = 1_000
_DRAIN = 2.0  # seconds; stopping the daemon may take five in all


class SchedulerTriggers:
    """Computes the times of any schedule.

    The trigger of a cron expression counts wall-clock time, as if every day had 24 hours. Clock
    changes are handled on top, as cron does. An expression with a fixed hour runs once a day: if a
    clock change skips its time, it runs later by the length of the gap; if its time occurs twice,
    it runs the first time. An expression with an open hour runs whenever the wall clock matches, so
    twice at times that occur twice.
    """

    def check(self, schedule: Schedule) -> None:
        """Raise InvalidRequest, with an example, if the schedule is invalid."""
        if isinstance(schedule, Cron):
            _cron(schedule.expression, schedule.zone)

    def after(self, schedule: Schedule, moment: datetime) -> datetime | None:
        """Return the first time of the schedule after `moment`; None if there is none within nine
        years.
        """
        match schedule:
            case At(at):
                return at if at > moment else None
            case Every(every, anchor):
                return anchor + ((moment - anchor) // every + 1) * every
            case Cron(expression, zone):
                return _cron(expression, zone).after(moment)


class Tick(Protocol):
    """A part of the daemon that has something to do at due times."""

    async def tick(self) -> None:
        """Do what is due now."""

    async def next_due(self) -> datetime | None:
        """Return when something is due next; None if nothing is."""


class Scheduler:
    """Calls each `tick` at the time of its `next_due` and at least once a minute; the calls of one
    part never overlap.

    Entering starts the scheduler. Leaving gives running ticks a moment to end, then cancels them. A
    tick that raises is logged and reported as a problem; the next one comes as usual.

    APScheduler compares wall-clock times, and its timer does not notice when the clock is set back:
    it would sleep for that much longer. So every wake-up is set within a minute, and a task on
    monotonic time (`_keep`) wakes all parts within half a minute after the wall clock has jumped.
    The parts themselves decide what is due.
    """

    def __init__(
        self,
        clock: Clock,
        ticks: Mapping[str, Tick],
        *,
        longest_sleep: float = _LONGEST_SLEEP,
        drain: float = _DRAIN,
    ) -> None:
        self._clock = clock
        self._rhythms = tuple(
            _TickSchedule(name, tick, asyncio.Event()) for name, tick in ticks.items()
        )
        self._longest_sleep = longest_sleep
        self._drain = drain
        self._aps: AsyncIOScheduler | None = None
        self._tasks = asyncio.TaskGroup()
        self._keeper: asyncio.Task[None] | None = None
        self._is_started = False
        for rhythm in self._rhythms:
            rhythm.idle.set()

    @property
    def name(self) -> str:
        """The name for the watchdog."""
        return "scheduler"

    async def __aenter__(self) -> Self:
        self._aps = AsyncIOScheduler(timezone=UTC, event_loop=asyncio.get_running_loop())
        for rhythm in self._rhythms:
            rhythm.woken_at = self._clock.monotonic()
            self._aps.add_job(
                self._wake,
                # The interval only keeps the job alive: every wake sets the next time itself.
                IntervalTrigger(days=1, timezone=UTC),
                args=[rhythm],
                id=rhythm.name,
                next_run_time=self._clock.now(),
                coalesce=True,
                max_instances=_ENDING,
                misfire_grace_time=None,  # run it however late: after a suspend all jobs are
            )
        self._is_started = True
        self._aps.start()
        await self._tasks.__aenter__()
        self._keeper = self._tasks.create_task(self._keep(), name="scheduler-keeper")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        aps, keeper = self._aps, self._keeper
        assert aps is not None
        assert keeper is not None
        keeper.cancel()
        aps.remove_all_jobs()
        try:
            async with asyncio.timeout(self._drain):
                await self._wait_idle()
        except TimeoutError:
            log.warning("tick_cancelled_by_stop")
        finally:
            # APScheduler's executor cancels what still runs, even with `wait`; the shutdown itself
            # happens in the loop's next round.
            aps.shutdown(wait=False)
            self._aps = None
            await self._tasks.__aexit__(None, None, None)
            await self._wait_idle()

    def poke(self) -> None:
        """Wake all parts now, because due times have changed. A running tick reads its due time
        when it ends.
        """
        for rhythm in self._rhythms:
            rhythm.is_changed = True
            if rhythm.idle.is_set():
                self._arm(rhythm, 0.0)

    def ages(self) -> dict[str, float]:
        """Return the seconds since each tick was last called, 0 while it runs; an empty dict before
        the start.
        """
        if not self._is_started:
            return {}
        now = self._clock.monotonic()
        return {r.name: now - r.woken_at if r.idle.is_set() else 0.0 for r in self._rhythms}

    @property
    def interval(self) -> float:
        """The longest time between two ticks of a part, in seconds."""
        return self._longest_sleep

    def problems(self) -> tuple[Problem, ...]:
        """Return whether the scheduler has stopped waking, and the ticks that failed when last
        called.
        """
        failing = tuple(r.failing for r in self._rhythms if r.failing is not None)
        if self._is_alive() or not self._is_started:
            return failing
        stalled = Problem(
            "scheduler_stalled", "the scheduler no longer wakes", "run `agentd restart`"
        )
        return (stalled, *failing)

    async def check(self) -> None:
        """Return if the scheduler has woken every part lately or its tick is running. Raises
        AgentdError if it is stuck.
        """
        if not self._is_alive():
            raise AgentdError("the scheduler no longer wakes", cure="run `agentd restart`")

    def _is_alive(self) -> bool:
        now = self._clock.monotonic()
        return self._is_started and all(
            not rhythm.idle.is_set() or now - rhythm.woken_at < _LATE for rhythm in self._rhythms
        )

    async def _wait_idle(self) -> None:
        for rhythm in self._rhythms:
            await rhythm.idle.wait()

    async def _wake(self, rhythm: _TickSchedule) -> None:
        if not rhythm.idle.is_set():  # the running tick reads the due time when it ends
            rhythm.is_changed = True
            return
        rhythm.woken_at = self._clock.monotonic()
        rhythm.idle.clear()
        delay = self._longest_sleep
        try:
            await rhythm.what.tick()
            due = await self._next_due(rhythm)
            if due is not None:
                delay = min(delay, (due - self._clock.now()).total_seconds())
            if rhythm.failing is not None:
                log.info("tick_recovered", tick=rhythm.name)
            rhythm.failing = None
        except (
            Exception
        ) as error:  # one failed tick must not end the schedule; the next comes within a minute
            log.exception("tick_failed", tick=rhythm.name, again=rhythm.failing is not None)
            rhythm.failing = _failure(rhythm.name, error)
        finally:
            rhythm.woken_at = self._clock.monotonic()
            rhythm.idle.set()
        # A due time that stays in the past (a session is busy) must not become a busy loop.
        self._arm(rhythm, max(delay, min(1.0, self._longest_sleep)))

    async def _next_due(self, rhythm: _TickSchedule) -> datetime | None:
        """Return the next due time of the part; ask again if it changed in the meantime."""
        while True:
            rhythm.is_changed = False
            due = await rhythm.what.next_due()
            if not rhythm.is_changed:
                return due

    def _arm(self, rhythm: _TickSchedule, delay: float) -> None:
        if self._aps is not None and self._aps.get_job(rhythm.name) is not None:
            at = self._clock.now() + timedelta(seconds=delay)
            self._aps.modify_job(rhythm.name, next_run_time=at)

    async def _keep(self) -> None:
        """Wake all parts soon after the wall clock has jumped, which APScheduler's timer does not
        notice, and each part that has slept for too long: its wake-up was set while the clock was
        ahead for a moment, between two looks.
        """
        before = self._clock_offset()
        while True:
            await self._clock.sleep(self._longest_sleep / 2)
            offset = self._clock_offset()
            if abs(offset - before) > _JUMP:
                log.warning("clock_jumped", by_s=round((offset - before).total_seconds()))
                self.poke()
            before = offset
            for rhythm in self._rhythms:
                slept = self._clock.monotonic() - rhythm.woken_at
                if rhythm.idle.is_set() and slept > 1.5 * self._longest_sleep:
                    self._arm(rhythm, 0.0)

    def _clock_offset(self) -> timedelta:
        """Return the wall clock minus monotonic time: a value that changes only when the wall clock
        jumps.
        """
        now = self._clock.now() - datetime.fromtimestamp(0, UTC)
        return now - timedelta(seconds=self._clock.monotonic())


class _TickSchedule(Struct):
    """The schedule of one Tick, separate so that no other one can delay it."""

    name: str
    what: Tick
    idle: asyncio.Event
    woken_at: float = 0.0
    is_changed: bool = False  # whether due times may have changed since `next_due` was called
    failing: Problem | None = None  # the error of the last tick


def _failure(name: str, error: Exception) -> Problem:
    told = error.message if isinstance(error, AgentdError) else f"it broke ({type(error).__name__})"
    cure = error.cure if isinstance(error, AgentdError) else ""
    return Problem(
        "tick_failed",
        f"what was due of the {name} could not be done, and is tried again within a minute: {told}",
        cure or "read the log: `agentd logs`",
    )


class _WallCron:
    """A cron expression in a zone. If both day of the month and day of the week are given, either
    may match.
    """

    def __init__(self, fields: tuple[str, ...], zone: ZoneInfo) -> None:
        minute, hour, day, month, weekday = fields
        self._zone = zone
        self._is_open = hour.startswith("*")
        pairs: tuple[tuple[str, str], ...] = ((day, weekday),)
        if not day.startswith("*") and not weekday.startswith("*"):
            pairs = ((day, "*"), ("*", weekday))
        self._triggers = tuple(_trigger(minute, hour, d, month, _weekdays(w)) for d, w in pairs)

    def after(self, moment: datetime) -> datetime | None:
        """Return the first instant after `moment` at which the wall clock matches; None if there is
        none within nine years.
        """
        wall = moment.astimezone(self._zone).replace(tzinfo=UTC, fold=0)
        first = self._next(wall + _INSTANT)
        if first is None:
            return None
        plain = self._instants(first)
        shift = self._shift(moment, first.replace(tzinfo=self._zone))
        if len(plain) == 1 and not shift:
            return plain[0]
        return self._searched(moment, wall, shift)

    def _searched(self, moment: datetime, wall: datetime, shift: timedelta) -> datetime | None:
        """Return what `after` returns, near a clock change by `shift`, where wall-clock times are
        not in the order of their instants.
        """
        best: datetime | None = None
        for slot in self._walls(wall - shift):
            if best is not None and slot > _wall(best, self._zone) + shift:
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
            # Without an end date the trigger would search through year 9999.
            trigger.end_date = start + timedelta(days=366 * _HORIZON_YEARS)
            slot = trigger.get_next_fire_time(None, start)
            if slot is not None:
                found.append(slot)
        return min(found, default=None)

    def _instants(self, slot: datetime) -> list[datetime]:
        """Return the instants at which the wall clock shows this time, in order; with a fixed hour
        only the first.
        """
        local = slot.replace(tzinfo=self._zone)
        early = local.astimezone(UTC)
        if not self._is_open:
            return [early]
        both = {early, local.replace(fold=1).astimezone(UTC)}
        return sorted(at for at in both if _wall(at, self._zone) == slot)

    def _shift(self, *moments: datetime) -> timedelta:
        """Return by how much the zone's clock changes within three hours of the moments; zero if it
        does not.
        """
        ends = (at.astimezone(UTC) + way for at in moments for way in (-_SHIFT, _SHIFT))
        offsets = [at.astimezone(self._zone).utcoffset() or timedelta() for at in ends]
        return max(offsets) - min(offsets)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=UTC, fold=0)


@lru_cache(maxsize=256)
def _cron(expression: str, zone: str) -> _WallCron:
    if len(expression) > _LONGEST_EXPRESSION:
        raise InvalidRequest(f"{expression[:40]!r}… is too long a cron expression", cure=_EXAMPLE)
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
    """Convert a weekday field from numbers to names: cron counts from Sunday, APScheduler from
    Monday.
    """
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
