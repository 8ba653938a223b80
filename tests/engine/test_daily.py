"""Work that is done once a day: some minutes after the start, once however long the machine
slept.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from agentd.core.errors import StorageFull
from agentd.engine.workers import AGAIN, DAY, FIRST, DailyWorker
from agentd.testing import FakeClock


class Work:
    """Counts, and fails as it is told to."""

    def __init__(self):
        self.done = 0
        self.errors = []

    async def __call__(self):
        if self.errors:
            raise self.errors.pop(0)
        self.done += 1


@asynccontextmanager
async def running(work):
    clock = FakeClock()
    daily = DailyWorker("tidying", work, clock)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(daily.run())
        await clock.settle()
        yield clock, daily
        task.cancel()


async def test_it_begins_some_minutes_after_the_start_and_then_every_day():
    async with running(work := Work()) as (clock, _):
        await clock.advance(FIRST - 1)
        assert work.done == 0
        await clock.advance(1)
        assert work.done == 1
        await clock.advance(DAY - 1)
        assert work.done == 1
        await clock.advance(1)
        assert work.done == 2


async def test_it_tells_when_it_is_due_and_work_by_hand_changes_nothing_of_that():
    work = Work()
    assert DailyWorker("tidying", work, FakeClock()).next_due is None
    work.errors = [StorageFull("the disk is full"), StorageFull("still")]
    async with running(work) as (clock, daily):
        assert daily.next_due == clock.now() + timedelta(seconds=FIRST)
        await clock.advance(FIRST)
        due = clock.now() + timedelta(seconds=AGAIN)
        assert daily.next_due == due
        with pytest.raises(StorageFull, match="still"):
            await daily.now()
        assert len(daily.problems()) == 1
        await clock.advance(60)
        await daily.now()
        assert (work.done, daily.problems(), daily.next_due) == (1, (), due)


async def test_days_that_were_missed_are_not_made_up_for():
    async with running(work := Work()) as (clock, _):
        await clock.advance(FIRST)
        clock.jump(timedelta(days=30))
        await clock.advance(DAY)
        assert work.done == 2


async def test_what_failed_is_tried_again_after_an_hour_and_told_until_then():
    work = Work()
    work.errors = [StorageFull("the disk is full"), RuntimeError("a flaw")]
    async with running(work) as (clock, daily):
        await clock.advance(FIRST)
        [problem] = daily.problems()
        assert (problem.code, problem.text) == ("tidying_failed", "the disk is full")
        await clock.advance(AGAIN)
        [problem] = daily.problems()
        assert problem.cure
        assert work.done == 0
        await clock.advance(AGAIN)
        assert (work.done, daily.problems()) == (1, ())


async def test_a_machine_that_is_awake_for_three_hours_a_day_does_it_every_day():
    async with running(work := Work()) as (clock, _):
        for _ in range(14):
            await clock.advance(3 * 3600)
            clock.jump(timedelta(hours=21))
        assert work.done == 14


async def test_a_clock_that_was_a_year_ahead_puts_nothing_off():
    async with running(work := Work()) as (clock, daily):
        clock.jump(timedelta(days=365))
        await clock.advance(FIRST)
        clock.jump(timedelta(days=-365))
        assert daily.next_due == clock.now() + timedelta(seconds=DAY)
        await clock.advance(DAY)
        assert work.done == 2
