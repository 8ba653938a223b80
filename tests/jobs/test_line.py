"""Jobs on time: over restarts, suspends and clocks that jump, against a count of all slots."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.jobs.jobs import JobLine
from agentd.automation.jobs.runs import Reminders
from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.alert import Recipients
from agentd.core.job import (
    At,
    Cron,
    Every,
    Job,
    JobKind,
    JobOutcome,
    JobRun,
    JobStep,
    Misfire,
    NewJob,
    Schedule,
)
from agentd.core.ports import JobStore
from agentd.storage.job_store import SqliteJobStore
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock, MemoryJobStore, MemoryOutbox

TRIGGERS = SchedulerTriggers()
SETTINGS = JobsSettings()
START = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)  # the evening before the clocks change in Berlin
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class World:
    """A line of reminders and its clock; `restart` makes a new line on the same book."""

    def __init__(self, book: Callable[[FakeClock], JobStore] = MemoryJobStore) -> None:
        self.clock = FakeClock(START)
        self.book = book(self.clock)
        self.restart()

    def restart(self, **table: object) -> None:
        work = Reminders(self.book, self.clock, lambda: None, Recipients(("journal",)))
        chosen = JobsSettings.model_validate(table)
        self.line = JobLine(JobKind.REMIND, chosen, self.book, TRIGGERS, self.clock, work)

    async def add(self, schedule: Schedule, misfire: Misfire = Misfire.ONCE) -> Job:
        first = TRIGGERS.after(schedule, self.clock.now())
        assert first is not None
        return await self.book.add(NewJob("tea", schedule, misfire=misfire), first, most=100)

    async def rows(self) -> list[JobRun]:
        return list(reversed(await self.book.runs(100_000)))

    async def live(self, span: timedelta) -> list[datetime]:
        """Do what the scheduler does; the slots that were used, in order."""
        before = len(await self.rows())
        end = self.clock.now() + span
        while self.clock.now() < end:
            await self.line.tick()
            due = await self.line.next_due()
            wait = min(due or end, end, self.clock.now() + MINUTE) - self.clock.now()
            self.clock.jump(max(wait, timedelta(seconds=1)))
        await self.line.tick()
        return [run.due for run in (await self.rows())[before:] if run.until is None]


def slots(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    found: list[datetime] = []
    at = TRIGGERS.after(schedule, after)
    while at is not None and at <= until:
        found.append(at)
        at = TRIGGERS.after(schedule, at)
    return found


def used(rows: list[JobRun]) -> list[datetime]:
    return [run.due for run in rows if run.until is None]


def is_missed(rows: list[JobRun], slot: datetime) -> bool:
    return any(run.until is not None and run.due <= slot <= run.until for run in rows)


Slots = tuple[list[datetime], list[datetime]]  # used, missed
SCHEDULES: st.SearchStrategy[Schedule] = st.one_of(
    st.integers(1, 3000).map(lambda n: At(START + n * MINUTE)),
    st.sampled_from([1, 7, 60, 90, 1440]).map(lambda n: Every(n * MINUTE, START)),
    st.tuples(
        st.sampled_from(["0 * * * *", "*/20 * * * *", "30 2 * * *", "0 9 * * 1-5", "15 1-3 * * *"]),
        st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    ).map(lambda pair: Cron(*pair)),
)
SPANS = st.sampled_from([5 / 60, 1, 3, 6, 45, 200, 1500, 9000]).map(lambda n: n * MINUTE)


def expected(
    pending: list[datetime], misfire: Misfire, now: datetime
) -> tuple[list[datetime], list[datetime]]:
    """What a tick uses and misses of the slots that have come since the last one."""
    match misfire:
        case Misfire.SKIP:
            runs = [slot for slot in pending[-1:] if now - slot <= SETTINGS.misfire_grace]
        case Misfire.ONCE:
            runs = pending[-1:]
        case Misfire.ALL:
            runs = pending[-SETTINGS.max_late_runs :]
    return runs, [slot for slot in pending if slot not in runs]


async def follow(
    world: World, schedule: Schedule, misfire: Misfire, steps: list[tuple[timedelta, bool]]
) -> tuple[Slots, Slots]:
    """The slots that were used and those that are recorded as missed; and what both should be."""
    await world.add(schedule, misfire)
    seen, wanted, missed = START, [], []
    for span, restarts in steps:
        world.clock.jump(span)
        if restarts:
            world.restart()
        for _ in range(2):  # a storm of wakes changes nothing
            await world.line.tick()
        now = world.clock.now()
        runs, gone = expected(slots(schedule, seen, now), misfire, now)
        wanted += runs
        missed += gone
        seen = now
    rows = await world.rows()
    recorded = [slot for slot in slots(schedule, START, seen) if is_missed(rows, slot)]
    return (used(rows), recorded), (wanted, missed)


@given(
    schedule=SCHEDULES,
    misfire=st.sampled_from(Misfire),
    steps=st.lists(st.tuples(SPANS, st.booleans()), min_size=1, max_size=12),
)
def test_every_slot_is_used_once_or_recorded_as_its_policy_says(schedule, misfire, steps):
    found, wanted = asyncio.run(follow(World(), schedule, misfire, steps))
    assert found == wanted


@settings(max_examples=12, deadline=None)
@given(
    schedule=SCHEDULES,
    misfire=st.sampled_from(Misfire),
    steps=st.lists(st.tuples(SPANS, st.booleans()), min_size=1, max_size=6),
)
def test_so_it_is_in_the_database(schedule, misfire, steps):
    async def run() -> tuple[Slots, Slots]:
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            opened = Database.open(Path(folder) / "s" / "state.db", STATE)
            db = await stack.enter_async_context(opened)
            world = World(lambda clock: SqliteJobStore(db, clock))
            return await follow(world, schedule, misfire, steps)

    found, wanted = asyncio.run(run())
    assert found == wanted


JUMPS = st.one_of(SPANS, SPANS.map(lambda span: -span), st.sampled_from([365 * DAY, -365 * DAY]))


@given(
    schedule=SCHEDULES.filter(lambda s: s != Every(MINUTE, START)),
    misfire=st.sampled_from(Misfire),
    steps=st.lists(st.tuples(JUMPS, st.booleans()), min_size=1, max_size=10),
)
def test_a_clock_that_jumps_repeats_nothing_and_loses_nothing(schedule, misfire, steps):
    async def run() -> None:
        world = World()
        await world.add(schedule, misfire)
        latest = START
        for jump, restarts in steps:
            world.clock.jump(jump)
            if restarts:
                world.restart()
            await world.line.tick()
            now = world.clock.now()
            latest = max(latest, now)
            rows = await world.rows()
            done = used(rows)
            assert len(done) == len(set(done)), "a slot was used twice"
            assert all(row.at >= row.due for row in rows), "a slot was used before its time"
            assert all(
                slot in done or is_missed(rows, slot)
                for slot in slots(schedule, max(START, latest - 10 * DAY), latest)
            ), "a slot was missed in silence"
            coming = [s for s in slots(schedule, now, now + 8 * DAY) if s not in done]
            due = await world.line.next_due()
            if coming and not isinstance(schedule, At):
                assert due is not None
                assert due <= coming[0], "a slot to come is not waited for"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("start", "hours"),
    [(datetime(2026, 3, 28, 20, tzinfo=UTC), 8), (datetime(2026, 10, 24, 20, tzinfo=UTC), 8)],
    ids=["spring", "autumn"],
)
async def test_both_nights_have_one_run_of_a_daily_job_and_all_of_an_hourly_one(start, hours):
    world = World()
    world.clock.jump(start - START)
    daily = await world.add(Cron("30 2 * * *", "Europe/Berlin"))
    hourly = await world.add(Cron("5 * * * *", "Europe/Berlin"))
    await world.live(timedelta(hours=hours))
    by_job = [run.job_id for run in await world.rows()]
    assert (by_job.count(daily.id), by_job.count(hourly.id)) == (1, hours)


async def test_a_hundred_restarts_neither_move_nor_repeat_a_slot():
    world = World()
    await world.add(Every(HOUR, START))
    found: list[datetime] = []
    for _ in range(100):
        found += await world.live(timedelta(minutes=13))
        world.restart()
    assert found == [START + n * HOUR for n in range(1, 22)]


async def test_a_daily_reminder_is_told_daily_with_the_same_words():
    clock = FakeClock(START)
    outbox = MemoryOutbox(clock)
    world = World(lambda _: MemoryJobStore(clock, outbox))
    world.clock = clock
    world.restart()
    await world.add(Every(12 * HOUR, START))
    assert len(await world.live(3 * DAY)) == 6
    told = await outbox.alerts(100)
    assert [alert.text for alert in told] == ["tea"] * 6
    assert {run.ending.outcome for run in await world.rows()} == {JobOutcome.ALERT}


async def test_jobs_that_are_off_wait_and_then_follow_their_policy():
    world = World()
    await world.add(At(START + HOUR))
    world.restart(enabled=False)
    assert await world.line.next_due() is None
    assert await world.live(3 * HOUR) == []
    world.restart()
    assert await world.live(MINUTE) == [START + HOUR]


class Lane:
    """Work whose lane may be taken."""

    def __init__(self, book: JobStore) -> None:
        self.book = book
        self.is_taken = True
        self.asked = 0

    def is_free(self, job: Job) -> bool:
        self.asked += 1
        return not self.is_taken

    async def run(self, job: Job, step: JobStep) -> JobRun | None:
        await self.book.begin(step)
        return None


async def test_a_taken_lane_is_asked_again_after_half_a_minute_and_leaves_no_row():
    world = World()
    job = await world.add(Every(HOUR, START))
    lane = Lane(world.book)
    world.line = JobLine(JobKind.REMIND, SETTINGS, world.book, TRIGGERS, world.clock, lane)
    await world.clock.advance(3600)
    await world.line.tick()
    await world.line.tick()
    assert lane.asked == 1
    assert await world.line.next_due() == world.clock.now() + timedelta(seconds=30)
    lane.is_taken = False
    await world.clock.advance(29)
    await world.line.tick()
    assert (await world.book.get(job.id)).runs == 0
    await world.clock.advance(1)
    await world.line.tick()
    done = await world.book.get(job.id)
    assert (done.runs, done.next_due) == (1, START + 2 * HOUR)


async def test_a_job_whose_zone_is_gone_keeps_no_other_from_its_work():
    world = World()
    gone = Cron("0 * * * *", "Mars/Olympus")
    lost = await world.book.add(NewJob("tea", gone), START + MINUTE, most=9)
    await world.add(Every(HOUR, START))
    assert await world.live(2 * HOUR) == [START + HOUR, START + 2 * HOUR]
    (problem,) = world.line.problems()
    assert f"job {lost.id} no longer runs" in problem.text
    await world.book.remove(lost.id)
    await world.line.tick()
    assert world.line.problems() == ()


@pytest.mark.parametrize("misfire", [Misfire.SKIP, Misfire.ONCE])
async def test_a_reminder_that_a_clock_which_was_ahead_passed_over_comes_in_its_time(misfire):
    world = World()
    job = await world.add(At(START + 2 * HOUR), misfire)
    await world.line.tick()
    world.clock.jump(3 * HOUR)
    await world.line.tick()
    world.clock.jump(-3 * HOUR)
    told = await world.live(3 * HOUR)
    # What was told early is told once, what was passed over is told in its time.
    assert used(await world.rows()) == [START + 2 * HOUR]
    assert told == ([START + 2 * HOUR] if misfire is Misfire.SKIP else [])
    assert (await world.book.get(job.id)).next_due is None
