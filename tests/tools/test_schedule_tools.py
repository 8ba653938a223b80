"""The tools for jobs: nothing without a yes, one job a call, nothing for others."""

from __future__ import annotations

import pytest

from agentd.automation.jobs.agenda import Agenda
from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.errors import InvalidRequest, ToolFailed
from agentd.core.job import JobKind
from agentd.core.prompt import Effect
from agentd.core.tool import ToolCall
from agentd.core.turn import Origin, SessionKey, kind_of
from agentd.interfaces.tools.schedule import ScheduleCancel, ScheduleCreate, ScheduleList
from agentd.testing import FakeClock, MemoryJobStore

TEA = {"text": "tea", "cron": "0 9 * * 1-5"}


class Gate:
    """A user who says `answer`."""

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer
        self.asked = []

    async def approve(self, approval):
        self.asked.append(approval)
        return self.answer


class Desk:
    def __init__(self) -> None:
        self.clock = FakeClock(zone="Europe/Berlin")
        book = MemoryJobStore(self.clock)
        self.agenda = Agenda(JobsSettings(), book, SchedulerTriggers(), self.clock)
        self.create = ScheduleCreate(self.agenda, self.clock)
        self.list = ScheduleList(self.agenda)
        self.cancel = ScheduleCancel(self.agenda)


def called(name, fields, *, call_id="c1", session="main", origin=Origin.USER, tainted=False):
    key = SessionKey(session)
    return ToolCall(call_id, name, fields, key, kind_of(key), origin, tainted)


def create(fields, **who):
    return called("schedule_create", fields, **who)


async def test_a_time_that_comes_once_is_told_once():
    desk, gate = Desk(), Gate()
    await desk.create.run(create({"text": "tea", "at": "2026-11-23 09:00"}), gate)
    (approval,) = gate.asked
    assert approval.title == "Remind: “tea”, at Monday 2026-11-23 09:00 (Europe/Berlin)"


async def test_a_job_is_made_after_a_yes_to_exactly_it():
    desk, gate = Desk(), Gate()
    out = await desk.create.run(create(TEA), gate)
    assert not out.is_error
    assert "Job 1" in out.text
    assert "Monday 2026-11-23 09:00 (Europe/Berlin)" in out.text
    (approval,) = gate.asked
    assert approval.scope == "once"
    for part in ("Remind", "tea", "0 9 * * 1-5", "Monday 2026-11-23 09:00"):
        assert part in approval.title
    (job,) = await desk.agenda.jobs()
    assert (job.what.text, job.what.created_by) == ("tea", "model")


async def test_the_question_is_bound_to_every_word_of_the_job():
    variants = [
        TEA,
        {**TEA, "text": "coffee"},
        {**TEA, "cron": "0 8 * * 1-5"},
        {**TEA, "zone": "UTC"},
        {**TEA, "kind": "ask"},
        {**TEA, "kind": "ask", "session": "main"},
    ]
    digests = set()
    for fields in variants:
        gate = Gate(answer=False)
        await Desk().create.run(create(fields), gate)
        digests.add(gate.asked[0].digest)
    assert len(digests) == len(variants)


async def test_a_no_makes_nothing():
    desk = Desk()
    out = await desk.create.run(create(TEA), Gate(answer=False))
    assert out.is_error
    assert await desk.agenda.jobs() == ()


async def test_a_call_that_a_crash_repeats_makes_one_job_and_asks_once():
    desk, gate = Desk(), Gate()
    assert desk.create.spec.effect is Effect.IDEMPOTENT
    first = await desk.create.run(create(TEA), gate)
    assert await desk.create.run(create(TEA), gate) == first
    assert len(gate.asked) == 1
    await desk.create.run(create(TEA, call_id="c2"), gate)
    assert len(await desk.agenda.jobs()) == 2


@pytest.mark.parametrize(
    "who",
    [
        {"session": "group:a"},
        {"session": "isolated:a"},
        {"origin": Origin.HEARTBEAT},
        {"origin": Origin.JOB},
        {"origin": Origin.FLUSH},
        {"origin": Origin.JOB, "tainted": True},
    ],
)
async def test_others_change_nothing_and_are_not_even_asked_about(who):
    desk, gate = Desk(), Gate()
    await desk.create.run(create(TEA, call_id="c0"), gate)
    gate.asked.clear()
    with pytest.raises(ToolFailed):
        await desk.create.run(create(TEA, **who), gate)
    with pytest.raises(ToolFailed):
        await desk.cancel.run(called("schedule_cancel", {"id": 1}, **who), gate)
    assert gate.asked == []
    assert len(await desk.agenda.jobs()) == 1


async def test_a_time_that_makes_no_sense_is_answered_with_a_right_one():
    desk, gate = Desk(), Gate()
    with pytest.raises(InvalidRequest) as refused:
        await desk.create.run(create({"text": "tea", "at": "2020-01-01 09:00"}), gate)
    assert "it is 2026-11-21" in refused.value.message
    assert gate.asked == []


async def test_a_text_that_could_not_be_shown_whole_is_refused():
    desk, gate = Desk(), Gate()
    with pytest.raises(ToolFailed):
        await desk.create.run(create({**TEA, "text": "x" * 1001}), gate)
    await desk.create.run(create({**TEA, "text": "x" * 999 + "y"}), gate)
    assert "xy" in gate.asked[0].title


async def test_letters_that_steer_a_terminal_are_shown_and_kept_as_marks():
    desk, gate = Desk(), Gate()
    await desk.create.run(create({**TEA, "text": "tea\u202e\x1b[2J"}), gate)
    (job,) = await desk.agenda.jobs()
    assert "\u202e" not in job.what.text + gate.asked[0].title
    assert "\x1b" not in job.what.text + gate.asked[0].title


async def test_the_list_is_the_owners():
    desk = Desk()
    assert "No jobs" in (await desk.list.run(called("schedule_list", {}), Gate())).text
    await desk.create.run(create({**TEA, "kind": "ask"}), Gate())
    out = await desk.list.run(called("schedule_list", {}), Gate())
    assert '"id": 1' in out.text
    assert JobKind.ASK in out.text
    due = (await desk.agenda.get(1)).next_due.astimezone(desk.clock.zone)
    assert f'"next_due": "{due:%Y-%m-%d} 09:00 CET"' in out.text
    await desk.create.run(create({"text": "milk", "at": "2026-12-01 09:00"}, call_id="c2"), Gate())
    await desk.create.run(create({"text": "walk", "every": "1d"}, call_id="c3"), Gate())
    out = await desk.list.run(called("schedule_list", {}), Gate())
    assert '{"at": "2026-12-01 09:00 CET"}' in out.text
    assert "+00:00" not in out.text
    with pytest.raises(ToolFailed):
        await desk.list.run(called("schedule_list", {}, session="group:a"), Gate())


async def test_a_job_is_cancelled_after_a_yes():
    desk, gate = Desk(), Gate(answer=False)
    await desk.create.run(create(TEA), Gate())
    cancel = called("schedule_cancel", {"id": 1})
    assert (await desk.cancel.run(cancel, gate)).is_error
    assert "tea" in gate.asked[0].title
    assert len(await desk.agenda.jobs()) == 1
    assert not (await desk.cancel.run(cancel, Gate())).is_error
    assert await desk.agenda.jobs() == ()
    again = await desk.cancel.run(cancel, gate)
    assert not again.is_error
    assert len(gate.asked) == 1


async def test_jobs_are_made_in_conversations_of_the_owner_alone(tools_offered):
    ours = {"schedule_create", "schedule_list", "schedule_cancel"}
    assert ours <= set(await tools_offered("main"))
    assert ours.isdisjoint(await tools_offered("group:club"))
    assert ours.isdisjoint(await tools_offered("beat"))
