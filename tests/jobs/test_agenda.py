"""What an order means, and what the agenda takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.automation.jobs.agenda import Agenda
from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.errors import Busy, InvalidRequest
from agentd.core.job import At, Cron, Every, JobKind, JobRequest, JobSession, Misfire
from agentd.testing import FakeClock, MemoryJobStore

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)  # 13:00 in Berlin


class Desk:
    """An agenda and the number of times it called."""

    def __init__(self, **table: object) -> None:
        self.clock = FakeClock(NOW, "Europe/Berlin")
        self.wakes = 0
        settings = JobsSettings.model_validate(table)
        book = MemoryJobStore(self.clock)
        self.agenda = Agenda(settings, book, SchedulerTriggers(), self.clock)
        self.agenda.listen(self.wake)

    def wake(self) -> None:
        self.wakes += 1


@pytest.mark.parametrize(
    ("words", "schedule", "first"),
    [
        ({"at": "2026-12-01 09:00"}, At(datetime(2026, 12, 1, 8, tzinfo=UTC)), "12-01 08:00"),
        (
            {"at": "2026-12-01 09:00", "zone": "America/New_York"},
            At(datetime(2026, 12, 1, 14, tzinfo=UTC)),
            "12-01 14:00",
        ),
        ({"at": "2026-12-01T09:00+00:00"}, At(datetime(2026, 12, 1, 9, tzinfo=UTC)), "12-01 09:00"),
        (
            {"at": "2027-03-28 02:30"},
            At(datetime(2027, 3, 28, 1, 30, tzinfo=UTC)),
            "03-28 01:30",
        ),
        ({"within": "2h"}, At(NOW + timedelta(hours=2)), "11-21 14:00"),
        ({"within": "5s"}, At(NOW + timedelta(seconds=5)), "11-21 12:00"),
        ({"every": "1d"}, Every(timedelta(days=1), NOW), "11-22 12:00"),
        ({"cron": "0  9 * * 1-5"}, Cron("0 9 * * 1-5", "Europe/Berlin"), "11-23 08:00"),
        ({"cron": "0 9 * * *", "zone": "UTC"}, Cron("0 9 * * *", "UTC"), "11-22 09:00"),
    ],
)
def test_times_are_read_in_the_owners_zone_or_the_one_that_is_named(words, schedule, first):
    job, due = Desk().agenda.read(JobRequest(" tea ", **words))
    assert (job.text, job.schedule) == ("tea", schedule)
    assert f"{due:%m-%d %H:%M}" == first


def test_what_is_not_said_comes_from_the_settings():
    job, _ = Desk(misfire="skip").agenda.read(JobRequest("tea", within="1h"))
    assert (job.kind, job.session, job.misfire) == (
        JobKind.REMIND,
        JobSession.ISOLATED,
        Misfire.SKIP,
    )
    order = JobRequest("tea", every="1h", kind="ask", session="main", misfire="all", model=" m ")
    job, _ = Desk().agenda.read(order)
    assert (job.kind, job.session, job.misfire, job.model) == (
        JobKind.ASK,
        JobSession.MAIN,
        Misfire.ALL,
        "m",
    )


@pytest.mark.parametrize(
    ("words", "told", "example"),
    [
        ({}, "no time", "--cron"),
        ({"every": "1h", "cron": "* * * * *"}, "more than one", "--every"),
        ({"at": "2026-11-21 12:59"}, "it is 2026-11-21 13:00:00 now", '"2026-11-22 09:00"'),
        ({"at": "tomorrow"}, "no date with a time", '"2026-11-22 09:00"'),
        ({"at": "2026-12-01"}, "no date with a time", '"2026-11-22 09:00"'),
        ({"at": "0001-01-01T00:00+14:00"}, "no date with a time", '"2026-11-22 09:00"'),
        ({"at": "9999-12-31T23:30+00:00"}, "no date with a time", '"2026-11-22 09:00"'),
        ({"every": "30s"}, "too often", '"1m"'),
        ({"every": "often"}, "no duration", '"1d"'),
        ({"every": "0s"}, "no duration", '"1d"'),
        ({"within": "99999d"}, "ten years", '"30d"'),
        ({"cron": "0 0 31 2 *"}, "never comes", '"0 9 * * 1-5"'),
        ({"cron": "nine"}, "no cron expression", '"0 9 * * 1-5"'),
        ({"cron": "0 9 * * *", "zone": "Mars"}, "no known time zone", '"Europe/Berlin"'),
        ({"every": "1h", "kind": "shout"}, "no kind", '"remind" or "ask"'),
        ({"every": "1h", "session": "x"}, "no session", '"main" or "isolated"'),
        ({"every": "1h", "misfire": "x"}, "no misfire", '"skip"'),
        ({"text": " ", "every": "1h"}, "no text", "say what"),
        ({"text": "x" * 4001, "every": "1h"}, "4001 characters", "file"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_right_example(words, told, example):
    with pytest.raises(InvalidRequest) as refused:
        Desk().agenda.read(JobRequest(**{"text": "tea", **words}))
    assert told in refused.value.message
    assert example in refused.value.cure


def test_a_cron_expression_keeps_the_least_interval_too():
    desk = Desk(min_interval="15m")
    desk.agenda.read(JobRequest("tea", cron="*/15 * * * *"))
    with pytest.raises(InvalidRequest, match="more often"):
        desk.agenda.read(JobRequest("tea", cron="0,5 9 * * *"))


def test_jobs_that_are_off_are_not_taken():
    with pytest.raises(InvalidRequest, match="off"):
        Desk(enabled=False).agenda.read(JobRequest("tea", within="1h"))


async def test_a_job_is_shown_with_its_next_five_times_in_the_owners_zone():
    desk = Desk(max_jobs=1)
    job, first = desk.agenda.read(JobRequest("tea", cron="0 9 * * 1-5"))
    stored = await desk.agenda.add(job, first)
    assert desk.wakes == 1
    shown = desk.agenda.described(stored)
    assert shown["next"] == [f"2026-11-{day}T09:00:00+01:00" for day in (23, 24, 25, 26, 27)]
    assert shown["schedule"] == {"cron": "0 9 * * 1-5", "zone": "Europe/Berlin"}
    with pytest.raises(Busy):
        await desk.agenda.add(job, first)
    await desk.agenda.remove(stored.id)
    assert await desk.agenda.jobs() == ()
