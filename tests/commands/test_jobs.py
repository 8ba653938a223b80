"""`_agentd/jobs/*`: the jobs as commands see them, the daemon's own among them."""

from datetime import UTC, datetime, timedelta

import pytest

from agentd.automation.jobs.agenda import Agenda
from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.beat import Beat, HeartbeatStatus, Outcome, Reason
from agentd.core.errors import GraphOff, InvalidRequest, NotFound
from agentd.core.evidence import Consolidated
from agentd.core.job import Ending, JobOutcome, JobReason, JobStep
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.commands.jobs import JOBS, ConsolidationJob, HeartbeatJob, JobCommands
from agentd.interfaces.commands.plain import TimeFormatter
from agentd.testing import FakeClock, MemoryBeats, MemoryJobStore

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Heartbeat:
    async def run(self, *, force=False):
        return Beat(1, NOW, None, Outcome.SKIPPED, Reason.NOTHING_DUE)

    async def status(self):
        return HeartbeatStatus(is_on=True, next_due=NOW)


class Jobs:
    def __init__(self, book):
        self.book = book

    async def run(self, job_id):
        await self.book.get(job_id)
        ending = Ending(JobOutcome.ALERT, JobReason.REMINDER, "tea")
        return await self.book.record(JobStep(job_id, None, None), ending)


class Upkeep:
    is_on = True
    next_due = NOW + timedelta(minutes=10)

    def __init__(self):
        self.done = []

    async def consolidate(self):
        self.done.insert(0, Consolidated(len(self.done), 7, NOW))
        return self.done[0]

    async def consolidations(self, limit):
        return self.done[:limit]


@pytest.fixture
def upkeep():
    return Upkeep()


@pytest.fixture
def ask(upkeep):
    clock = FakeClock(NOW)
    book = MemoryJobStore(clock)
    agenda = Agenda(JobsSettings(), book, SchedulerTriggers(), clock)
    beats = MemoryBeats(clock)
    heartbeat = HeartbeatJob(Heartbeat(), beats, lambda: timedelta(minutes=30))
    graph = ConsolidationJob(upkeep, timedelta(days=1))
    routes = methods(JOBS, JobCommands(agenda, Jobs(book), (heartbeat, graph)))

    async def ask(name, **params):
        return await routes[f"_agentd/jobs/{name}"](params, None)

    return ask


async def test_a_job_is_added_listed_run_and_removed(ask):
    job = await ask("add", text="tea", **{"in": "2h"}, misfire="skip")
    assert job["schedule"] == {"at": "2026-11-21T14:00:00+00:00"}
    assert (job["kind"], job["misfire"], job["enabled"]) == ("remind", "skip", True)
    heartbeat, _, listed = (await ask("list"))["jobs"]
    assert {**listed, "times_in": "UTC"} == job
    assert (heartbeat["id"], heartbeat["schedule"]) == ("heartbeat", {"every": "30m"})
    run = await ask("run", id=job["id"])
    assert (run["outcome"], run["reason"], run["text"]) == ("alert", "reminder", "tea")
    assert (await ask("history"))["runs"] == [run]
    assert (await ask("history", id=job["id"], limit=1))["runs"] == [run]
    assert (await ask("remove", id=job["id"]))["removed"]["text"] == "tea"
    assert len((await ask("list"))["jobs"]) == 2


async def test_times_are_told_with_the_zone_that_they_are_shown_in(ask):
    job = await ask("add", text="tea", at="2026-12-01 09:00", zone="Asia/Tokyo")
    told = TimeFormatter(FakeClock(NOW)).read(job)
    assert "2026-12-01 00:00" in JOBS["add"].show(told)
    assert "UTC" in JOBS["add"].show(told)
    for name in ("list", "history"):
        await ask("run", id=job["id"])
        shown = JOBS[name].show(await ask(name))
        assert shown.splitlines()[0] == "times are those of UTC"


async def test_a_reminder_is_shown_without_what_concerns_questions_alone(ask):
    shown = JOBS["add"].show(await ask("add", text="tea", at="2026-12-01 09:00"))
    assert not {"model", "session"} & {line.split(" ")[0] for line in shown.splitlines()}
    shown = JOBS["add"].show(
        await ask("add", text="new?", at="2026-12-01 09:00", ask=True, session="main")
    )
    assert {"session"} <= {line.split(" ")[0] for line in shown.splitlines()}


def test_the_last_run_of_a_job_is_told_in_one_line():
    run = {"at": "today 10:42", "outcome": "alert", "reason": "alert", "text": "Due now: tea"}
    job = {
        "id": "heartbeat",
        "kind": "system",
        "schedule": {"every": "30m"},
        "text": "go through HEARTBEAT.md",
        "next": [],
        "enabled": True,
        "last": run,
    }
    shown = JOBS["list"].show({"jobs": [job], "times_in": "UTC"})
    assert shown.splitlines()[-1] == "    last today 10:42  alert: Due now: tea"


async def test_a_question_is_added_in_the_words_of_the_command(ask):
    job = await ask("add", text="new?", cron="0 9 * * 1-5", ask=True, session="main", model="m")
    assert (job["kind"], job["session"], job["model"]) == ("ask", "main", "m")
    assert len(job["next"]) == 5


async def test_the_heartbeat_can_be_run_and_not_removed(ask):
    assert (await ask("run", id="heartbeat"))["reason"] == "nothing_due"
    assert (await ask("history", id="heartbeat"))["runs"] == []
    with pytest.raises(InvalidRequest) as refused:
        await ask("remove", id="heartbeat")
    assert "heartbeat pause" in refused.value.cure


async def test_the_consolidation_is_listed_run_and_not_removed(ask, upkeep):
    _, listed = (await ask("list"))["jobs"]
    due = "2026-11-21T12:10:00+00:00"
    assert (listed["id"], listed["schedule"], listed["enabled"]) == ("graph", {"every": "1d"}, True)
    assert (listed["next_due"], listed["next"], listed["last"]) == (due, [due], None)
    runs = [await ask("run", id="graph") for _ in range(2)]
    assert [(run["job"], run["text"]) for run in runs] == [
        ("graph", "promoted 0, swept 7"),
        ("graph", "promoted 1, swept 7"),
    ]
    assert (await ask("history", id="graph"))["runs"] == runs[::-1]
    assert (await ask("history", id="graph", limit=1))["runs"] == runs[1:]
    assert (await ask("list"))["jobs"][1]["last"] == runs[1]
    with pytest.raises(InvalidRequest) as refused:
        await ask("remove", id="graph")
    assert "[graph]" in refused.value.cure


async def test_a_graph_that_is_off_is_not_consolidated(ask, upkeep):
    upkeep.is_on = False
    _, listed = (await ask("list"))["jobs"]
    assert (listed["enabled"], listed["next_due"], listed["next"]) == (False, None, [])
    with pytest.raises(GraphOff):
        await ask("run", id="graph")
    assert upkeep.done == []


@pytest.mark.parametrize("name", ["run", "remove", "history"])
async def test_a_job_that_is_not_there(ask, name):
    with pytest.raises(NotFound):
        await ask(name, id=9)


@pytest.mark.parametrize("params", [{}, {"id": "x"}, {"id": True}, {"id": 1, "y": 2}])
async def test_params_are_checked(ask, params):
    with pytest.raises(InvalidRequest):
        await ask("run", **params)
