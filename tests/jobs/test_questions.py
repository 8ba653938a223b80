"""Questions: asked in silence, judged, told or not, and skipped for a reason."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.jobs.jobs import Jobs
from agentd.automation.jobs.runs import ISOLATED, RunDependencies
from agentd.automation.scheduler import SchedulerTriggers
from agentd.core.alert import Recipients
from agentd.core.errors import Busy, NotFound, ShuttingDown, StorageFull
from agentd.core.job import (
    At,
    Every,
    Job,
    JobKind,
    JobOutcome,
    JobReason,
    JobRun,
    JobSession,
    NewJob,
)
from agentd.core.turn import (
    Failure,
    FinishedCall,
    Origin,
    PromptScope,
    SessionKey,
    SessionKind,
    StopReason,
    Turn,
    Usage,
)
from agentd.testing import FakeClock, MemoryJobStore, MemoryLedger, MemoryOutbox
from agentd.testing.job_doubles import FakeTicket

HOUR = timedelta(hours=1)
NOTIFIED = (FinishedCall("c1", "notify", {}, is_error=False),)


@dataclass
class GatedTicket:
    """A submitted turn that ends when the gate is open."""

    turn: Turn
    gate: asyncio.Event

    async def wait(self) -> Turn:
        await self.gate.wait()
        return self.turn


@dataclass
class Turns:
    """An engine that answers every request with `reply`."""

    ledger: MemoryLedger
    reply: str = "HEARTBEAT_OK"
    failure: Failure | None = None
    stop: StopReason = StopReason.END_TURN
    tools: tuple[FinishedCall, ...] = ()
    refusal: Exception | None = None
    hangs: bool = False
    gate: asyncio.Event | None = None  # until which no answer comes
    busy: set[SessionKey] = field(default_factory=set)
    requests: list[Any] = field(default_factory=list)
    cancelled: list[Any] = field(default_factory=list)

    async def submit(self, request, sink):
        if self.refusal is not None:
            raise self.refusal
        self.requests.append(request)
        await self.ledger.charge(request.session, request.origin, "m", Usage(90, 10), 0.25)
        turn = Turn(
            request.session,
            request.message_id,
            self.reply,
            None if self.failure else self.stop,
            tool_calls=self.tools,
            failure=self.failure,
        )
        if self.gate is not None:
            return GatedTicket(turn, self.gate)
        return FakeTicket(None if self.hangs else turn)

    def is_busy(self, session):
        return session in self.busy

    def cancel_message(self, session, message_id):
        self.cancelled.append((session, message_id))
        return True


class Breaker:
    is_tripped = False

    def is_open(self):
        return self.is_tripped


class World:
    """Jobs with everything around them."""

    def __init__(self, book: type[MemoryJobStore] = MemoryJobStore, **table: object) -> None:
        self.clock = FakeClock()
        self.outbox = MemoryOutbox(self.clock)
        self.book = book(self.clock, self.outbox)
        self.turns = Turns(MemoryLedger(self.clock))
        self.breaker = Breaker()
        self.over_budget = False
        self.taken_meanwhile: set[SessionKey] = set()  # taken while the budget is looked at
        self.wakes = 0
        self.owned: list[asyncio.Task[JobRun | None]] = []
        deps = RunDependencies(
            self.clock,
            self.book,
            self.turns.ledger,
            self.turns,
            self.breaker,
            self.own,
            self.budget,
            self.wake,
        )
        settings = JobsSettings.model_validate(table)
        self.jobs = Jobs(
            settings, deps, SchedulerTriggers(), "Do it.", Recipients(("journal",), "me")
        )

    async def own(self, work):
        task = asyncio.create_task(work)
        self.owned.append(task)
        return await asyncio.shield(task)

    async def stop(self) -> None:
        for task in self.owned:
            task.cancel()
        await asyncio.wait(self.owned)

    async def budget(self) -> bool:
        self.turns.busy |= self.taken_meanwhile
        return self.over_budget

    def wake(self) -> None:
        self.wakes += 1

    async def add(self, kind: JobKind = JobKind.ASK, **fields: Any) -> Job:
        new = NewJob("what is new?", Every(HOUR, self.clock.now()), kind, **fields)
        return await self.book.add(new, self.clock.now() + HOUR, most=10)

    async def add_once(self) -> Job:
        at = self.clock.now() + HOUR
        return await self.book.add(NewJob("what is new?", At(at), JobKind.ASK), at, most=10)

    async def come(self) -> JobRun:
        """An hour later."""
        self.clock.jump(HOUR)
        for line in self.jobs.lines.values():
            await line.tick()
        return (await self.book.runs(1))[0]

    async def told(self) -> list[str]:
        return [alert.text for alert in await self.outbox.alerts(10)]


@pytest.mark.parametrize("reply", ["HEARTBEAT_OK", "NO_REPLY", "**heartbeat_ok** all fine"])
async def test_a_reply_that_says_nothing_is_silence(reply):
    world = World()
    world.turns.reply = reply
    await world.add()
    run = await world.come()
    assert (run.ending.outcome, run.ending.reason) == (JobOutcome.QUIET, JobReason.ACK)
    assert (run.ending.tokens, run.ending.cost_usd) == (100, 0.25)
    assert await world.told() == []


async def test_a_reply_that_says_something_is_told_once_a_day():
    world = World()
    world.turns.reply = "The disk is full"
    await world.add()
    run = await world.come()
    assert (run.ending.outcome, run.ending.reason) == (JobOutcome.ALERT, JobReason.ALERT)
    (alert,) = await world.outbox.alerts(10)
    assert (alert.text, alert.origin, alert.to) == ("The disk is full", "job", "me")
    assert world.wakes == 1
    again = await world.come()
    assert (again.ending.outcome, again.ending.reason) == (JobOutcome.QUIET, JobReason.DUPLICATE)


async def test_what_the_model_has_told_itself_is_not_told_again():
    world = World()
    world.turns.reply, world.turns.tools = "I told you", NOTIFIED
    await world.add()
    assert (await world.come()).ending.reason is JobReason.NOTIFY


async def test_a_question_that_would_pass_a_limit_is_named_so():
    world = World()
    world.turns.failure = Failure("provider_budget", "The call was not made.")
    await world.add()
    run = await world.come()
    assert (run.ending.outcome, run.ending.reason) == (JobOutcome.FAILED, JobReason.BUDGET)


@pytest.mark.parametrize("how", ["fault", "silence", "breaker", "budget"])
async def test_a_question_with_one_date_outlives_a_short_fault(how):
    world = World()
    world.turns.reply = "" if how == "silence" else "The roof leaks"
    world.turns.failure = Failure("provider_server_error", "down") if how == "fault" else None
    world.breaker.is_tripped, world.over_budget = how == "breaker", how == "budget"
    job = await world.add_once()
    assert (await world.come()).ending.outcome in (JobOutcome.FAILED, JobOutcome.SKIPPED)
    line = world.jobs.lines["questions"]
    assert await line.next_due() == world.clock.now() + timedelta(minutes=2)
    world.turns.failure, world.turns.reply = None, "The roof leaks"
    world.breaker.is_tripped = world.over_budget = False
    assert (await world.come()).ending.reason is JobReason.ALERT
    assert await world.told() == ["The roof leaks"]
    assert await line.next_due() is None
    assert len(await world.book.runs(10, job.id)) == 2


@pytest.mark.parametrize("how", ["fault", "breaker"])
async def test_the_owner_is_told_once_that_a_question_with_one_date_is_given_up(how):
    world = World()
    world.turns.failure = Failure("provider_server_error", "down")
    world.breaker.is_tripped = how == "breaker"
    await world.add_once()
    line, began = world.jobs.lines["questions"], world.clock.now() + HOUR
    await world.come()
    while (due := await line.next_due()) is not None:
        assert await world.told() == []
        world.clock.jump(due - world.clock.now())
        await line.tick()
    assert timedelta(hours=12) < world.clock.now() - began < timedelta(hours=24)
    (told,) = await world.told()
    assert "could not be asked" in told
    assert "what is new?" in told
    assert world.wakes == 1
    (last, *_) = await world.book.runs(1)
    assert last.ending.outcome in (JobOutcome.FAILED, JobOutcome.SKIPPED)


async def test_a_question_that_comes_round_waits_for_its_next_time():
    world = World()
    world.turns.failure = Failure("provider_server_error", "down")
    await world.add()
    await world.come()
    assert await world.jobs.lines["questions"].next_due() == world.clock.now() + HOUR


async def test_a_question_whose_own_alerts_were_all_repetitions_is_a_duplicate():
    world = World()
    again = FinishedCall("c2", "notify", {}, is_error=False, is_repetition=True)
    world.turns.tools = (again,)
    await world.add()
    run = await world.come()
    assert (run.ending.outcome, run.ending.reason) == (JobOutcome.QUIET, JobReason.DUPLICATE)
    world.turns.tools = (again, *NOTIFIED)
    assert (await world.come()).ending.reason is JobReason.NOTIFY
    assert await world.told() == []


@pytest.mark.parametrize(
    ("session", "key", "context", "kind"),
    [
        (JobSession.ISOLATED, ISOLATED, PromptScope.LIGHT, SessionKind.ISOLATED),
        (JobSession.MAIN, "main", PromptScope.SESSION, SessionKind.OWNER),
    ],
)
async def test_a_question_sees_what_its_session_says(session, key, context, kind):
    world = World()
    job = await world.add(session=session, model="small")
    run = await world.come()
    (request,) = world.turns.requests
    assert (request.session, request.context, request.kind) == (key, context, kind)
    assert (request.origin, request.model) == (Origin.JOB, "small")
    assert request.message_id == f"job:{run.id}"
    assert request.tools is not None
    assert {"memory_read", "memory_search", "*"} <= request.tools
    assert ("memory_write" in request.tools) == (session is JobSession.MAIN)
    assert request.text.startswith("Do it.\n\n## Job\n\nwhat is new?\n\nCurrent time: 2026-11-21")
    assert run.job_id == job.id


@pytest.mark.parametrize(
    ("change", "reason", "text"),
    [
        ({"failure": Failure("overloaded", "no room")}, JobReason.PROVIDER_ERROR, "no room"),
        ({"refusal": Busy("full")}, JobReason.PROVIDER_ERROR, "full"),
        ({"refusal": ShuttingDown("bye")}, JobReason.INTERRUPTED, "bye"),
        ({"stop": StopReason.CANCELLED}, JobReason.INTERRUPTED, ""),
        ({"reply": ""}, JobReason.EMPTY_REPLY, ""),
    ],
)
async def test_failures_have_a_reason_and_tell_nobody(change, reason, text):
    world = World()
    for name, value in change.items():
        setattr(world.turns, name, value)
    await world.add()
    run = await world.come()
    ending = (run.ending.outcome, run.ending.reason, run.ending.text)
    assert ending == (JobOutcome.FAILED, reason, text)
    assert await world.told() == []


async def test_a_question_that_takes_too_long_is_cancelled():
    world = World(timeout=timedelta(milliseconds=20))
    world.turns.hangs = True
    await world.add()
    assert (await world.come()).ending.reason is JobReason.PROVIDER_ERROR
    assert world.turns.cancelled == [(ISOLATED, "job:1")]


async def test_no_money_or_no_service_skips_questions_and_no_reminder():
    world = World()
    await world.add()
    world.over_budget = True
    assert (await world.come()).ending.reason is JobReason.BUDGET
    world.over_budget, world.breaker.is_tripped = False, True
    assert (await world.come()).ending.reason is JobReason.BREAKER_OPEN
    assert world.turns.requests == []
    world.over_budget = True
    await world.add(JobKind.REMIND)
    await world.come()
    assert await world.told() == ["what is new?"]


async def test_a_question_waits_for_the_conversation_and_has_one_row():
    world = World()
    await world.add(session=JobSession.MAIN)
    world.turns.busy.add(SessionKey("main"))
    world.clock.jump(HOUR)
    line = world.jobs.lines["questions"]
    for _ in range(3):
        await line.tick()
        await world.clock.advance(30)
    assert await world.book.runs(10) == ()
    world.turns.busy.clear()
    await line.tick()
    (run,) = await world.book.runs(10)
    assert run.due == run.at - timedelta(seconds=90)


async def test_a_question_whose_conversation_is_taken_at_the_last_moment_keeps_its_slot():
    world = World()
    job = await world.add(session=JobSession.MAIN)
    world.clock.jump(HOUR)
    world.taken_meanwhile.add(SessionKey("main"))
    line = world.jobs.lines["questions"]
    await line.tick()
    assert await world.book.runs(10) == ()
    assert await line.next_due() == world.clock.now() + timedelta(seconds=30)
    world.taken_meanwhile.clear()
    world.turns.busy.clear()
    await world.clock.advance(30)
    await line.tick()
    (run,) = await world.book.runs(10)
    assert (run.due, run.ending.reason) == (job.next_due, JobReason.ACK)


async def test_a_run_by_hand_whose_conversation_is_taken_at_the_last_moment_is_busy():
    world = World()
    job = await world.add(session=JobSession.MAIN)
    world.taken_meanwhile.add(SessionKey("main"))
    assert (await world.jobs.run(job.id)).ending.reason is JobReason.BUSY


async def test_a_question_that_a_crash_cut_is_not_asked_again():
    world = World()
    job = await world.add()
    world.turns.hangs = True
    world.clock.jump(HOUR)
    tick = asyncio.create_task(world.jobs.lines["questions"].tick())
    while not world.turns.requests:
        await asyncio.sleep(0)
    tick.cancel()
    with pytest.raises(asyncio.CancelledError):
        await tick
    await world.stop()
    assert await world.jobs.recover() == 1
    world.turns.hangs = False
    await world.jobs.lines["questions"].tick()
    (run,) = await world.book.runs(10)
    assert run.ending.reason is JobReason.INTERRUPTED
    assert len(world.turns.requests) == 1
    assert (await world.come()).ending.reason is JobReason.ACK
    assert (await world.book.get(job.id)).runs == 2


@pytest.mark.parametrize("is_by_hand", [True, False])
async def test_an_alert_is_told_though_whoever_asked_has_gone(is_by_hand):
    world = World()
    job = await world.add()
    world.turns.reply, world.turns.gate = "ALERT: the cellar is flooded", asyncio.Event()
    world.clock.jump(HOUR)
    asked = world.jobs.run(job.id) if is_by_hand else world.jobs.lines["questions"].tick()
    caller = asyncio.create_task(asked)
    while not world.turns.requests:
        await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (await world.jobs.run(job.id)).ending.reason is JobReason.BUSY
    world.turns.gate.set()
    await world.clock.settle()
    assert await world.told() == ["ALERT: the cellar is flooded"]
    assert world.wakes == 1
    assert JobOutcome.ALERT in [run.ending.outcome for run in await world.book.runs(9)]
    assert (await world.jobs.recover(), len(world.turns.requests)) == (0, 1)


class FullOnce(MemoryJobStore):
    """A disk that has no room when an answer is to be kept."""

    refusals = 2

    async def end(self, run_id, ending, alert=None):
        if self.refusals:
            self.refusals -= 1
            raise StorageFull
        return await super().end(run_id, ending, alert)


async def test_an_answer_waits_for_room_on_a_full_disk():
    world = World(book=FullOnce)
    job = await world.add()
    world.turns.reply = "ALERT: the cellar is flooded"
    caller = asyncio.create_task(world.jobs.run(job.id))
    await world.clock.settle()
    assert await world.told() == []
    await world.clock.advance(5)
    assert (await caller).ending.outcome is JobOutcome.ALERT
    assert await world.told() == ["ALERT: the cellar is flooded"]
    assert len(world.turns.requests) == 1


async def test_runs_by_hand_leave_the_schedule_alone():
    world = World()
    question, reminder = await world.add(), await world.add(JobKind.REMIND)
    assert (await world.jobs.run(question.id)).ending.reason is JobReason.ACK
    assert (await world.jobs.run(reminder.id)).ending.reason is JobReason.REMINDER
    world.turns.busy.add(ISOLATED)
    assert (await world.jobs.run(question.id)).ending.reason is JobReason.BUSY
    assert {job.next_due for job in await world.book.jobs()} == {question.next_due}
    with pytest.raises(NotFound):
        await world.jobs.run(99)
