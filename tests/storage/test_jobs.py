"""The contract of JobStore, over every implementation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentd.core.alert import NewAlert
from agentd.core.errors import Busy, NotFound
from agentd.core.job import (
    At,
    Cron,
    Ending,
    Every,
    JobKind,
    JobOutcome,
    JobReason,
    JobSession,
    JobStep,
    Misfire,
    MissedSlots,
    NewJob,
)

HOUR = timedelta(hours=1)
DONE = Ending(JobOutcome.QUIET, JobReason.ACK, "fine", 7, 0.5)
TOLD = Ending(JobOutcome.ALERT, JobReason.ALERT, "look")
ALERT = NewAlert("look", "job", "d1", ("main",))


async def a_job(stores, clock, **fields):
    new = NewJob("tea", Every(HOUR, clock.now()), **fields)
    return await stores.jobs.add(new, clock.now() + HOUR, most=100)


async def test_jobs_come_back_as_they_were_stored(stores, clock):
    now = clock.now()
    news = [
        NewJob("once\n½", At(now + HOUR), misfire=Misfire.ALL),
        NewJob("often", Every(timedelta(days=1, seconds=5), now), created_by="model"),
        NewJob(
            "ask", Cron("0 9 * * 1-5", "Europe/Berlin"), JobKind.ASK, JobSession.MAIN, model="m"
        ),
    ]
    stored = [await stores.jobs.add(new, now + HOUR, most=3) for new in news]
    assert [job.what for job in stored] == news
    assert await stores.jobs.jobs() == tuple(stored)
    assert await stores.jobs.get(stored[1].id) == stored[1]
    assert {(job.created_at, job.next_due, job.runs) for job in stored} == {(now, now + HOUR, 0)}


async def test_only_so_many_jobs_wait_and_done_ones_do_not_count(stores, clock):
    job = await stores.jobs.add(NewJob("a", At(clock.now() + HOUR)), clock.now() + HOUR, most=1)
    with pytest.raises(Busy):
        await stores.jobs.add(NewJob("b", At(clock.now() + HOUR)), clock.now() + HOUR, most=1)
    await stores.jobs.record(JobStep(job.id, job.next_due, None), DONE)
    assert await stores.jobs.jobs() == ()
    assert [done.id for done in await stores.jobs.jobs(past=True)] == [job.id]
    await stores.jobs.add(NewJob("b", At(clock.now() + HOUR)), clock.now() + HOUR, most=1)


async def test_a_key_makes_one_job(stores, clock):
    new = NewJob("a", At(clock.now() + HOUR))
    assert await stores.jobs.by_key("k") is None
    first = await stores.jobs.add(new, clock.now() + HOUR, most=1, key="k")
    assert await stores.jobs.add(new, clock.now() + HOUR, most=1, key="k") == first
    assert await stores.jobs.by_key("k") == first
    assert len(await stores.jobs.jobs()) == 1


async def test_a_removed_job_is_gone_with_its_history(stores, clock):
    job = await a_job(stores, clock)
    run_id = await stores.jobs.begin(JobStep(job.id, job.next_due, job.next_due + HOUR))
    assert (await stores.jobs.remove(job.id)).id == job.id
    assert await stores.jobs.runs(10) == ()
    assert await stores.jobs.end(run_id, TOLD, ALERT) is None
    assert await stores.outbox.alerts(10) == ()
    assert await stores.jobs.begin(JobStep(job.id, job.next_due, None)) is None
    await stores.jobs.pass_over(JobStep(job.id, None, None))
    for unknown in (stores.jobs.remove(job.id), stores.jobs.get(job.id)):
        with pytest.raises(NotFound):
            await unknown


async def test_a_slot_is_used_with_the_next_due_time(stores, clock):
    job = await a_job(stores, clock)
    due = job.next_due
    run_id = await stores.jobs.begin(JobStep(job.id, due, due + HOUR))
    assert await stores.jobs.runs(10) == ()
    (moved,) = await stores.jobs.jobs()
    assert (moved.next_due, moved.runs) == (due + HOUR, 1)
    run = await stores.jobs.end(run_id, DONE)
    assert (run.due, run.until, run.at, run.ending) == (due, None, clock.now(), DONE)
    assert await stores.jobs.runs(10) == (run,)
    assert await stores.jobs.runs(10, job.id) == (run,)
    assert await stores.jobs.runs(10, job.id + 1) == ()
    with pytest.raises(NotFound):
        await stores.jobs.end(run_id, DONE)


async def test_no_slot_is_used_twice_and_the_due_time_moves_on(stores, clock):
    job = await a_job(stores, clock)
    due = job.next_due
    await stores.jobs.record(JobStep(job.id, due, due), DONE)
    assert await stores.jobs.begin(JobStep(job.id, due, due + HOUR)) is None
    assert await stores.jobs.record(JobStep(job.id, due, due + 2 * HOUR), TOLD, ALERT) is None
    (moved,) = await stores.jobs.jobs()
    assert (moved.next_due, moved.runs) == (due + 2 * HOUR, 1)
    assert await stores.outbox.alerts(10) == ()
    assert await stores.jobs.used(job.id, due - HOUR) == {due}
    assert await stores.jobs.used(job.id, due) == frozenset()


async def test_missed_slots_have_a_row_and_are_not_used(stores, clock):
    job = await a_job(stores, clock)
    due = job.next_due
    await stores.jobs.pass_over(
        JobStep(job.id, None, due + 3 * HOUR, MissedSlots(due, due + 2 * HOUR))
    )
    (row,) = await stores.jobs.runs(10)
    assert (row.due, row.until) == (due, due + 2 * HOUR)
    assert (row.ending.outcome, row.ending.reason) == (JobOutcome.MISSED, JobReason.LATE)
    assert await stores.jobs.used(job.id, due - HOUR) == frozenset()
    assert await stores.jobs.begin(JobStep(job.id, due, due + HOUR)) is not None


async def test_a_run_by_hand_leaves_the_schedule_alone(stores, clock):
    job = await a_job(stores, clock)
    for _ in range(2):
        assert await stores.jobs.record(JobStep(job.id, None, None), DONE) is not None
    (same,) = await stores.jobs.jobs()
    assert (same.next_due, same.runs) == (job.next_due, 2)


async def test_an_alert_is_stored_with_the_run_and_a_repetition_is_quiet(stores, clock):
    job = await a_job(stores, clock)
    due = job.next_due
    run = await stores.jobs.record(JobStep(job.id, due, due + HOUR), TOLD, ALERT)
    assert run.ending == TOLD
    run_id = await stores.jobs.begin(JobStep(job.id, due + HOUR, due + 2 * HOUR))
    again = await stores.jobs.end(run_id, TOLD, ALERT)
    assert (again.ending.outcome, again.ending.reason) == (JobOutcome.QUIET, JobReason.DUPLICATE)
    assert len(await stores.outbox.alerts(10)) == 1


async def test_runs_cut_by_a_crash_are_marked_once(stores, clock):
    job = await a_job(stores, clock)
    await stores.jobs.begin(JobStep(job.id, job.next_due, None))
    assert await stores.jobs.interrupt() == 1
    assert await stores.jobs.interrupt() == 0
    (run,) = await stores.jobs.runs(10)
    assert (run.ending.outcome, run.ending.reason) == (JobOutcome.FAILED, JobReason.INTERRUPTED)
