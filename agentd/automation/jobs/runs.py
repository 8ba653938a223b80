"""What a due job does: send a reminder, or ask the model a question."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.jobs.slots import again
from agentd.core import failpoints
from agentd.core.alert import AlertSeverity, NewAlert, Recipients, alert_digest
from agentd.core.errors import Busy
from agentd.core.job import At, Ending, Job, JobOutcome, JobReason, JobRun, JobSession, JobStep
from agentd.core.ports import Breaker, Clock, JobStore, Ledger, TurnRunner
from agentd.core.turn import MAIN, OTHERS, Origin, PromptScope, SessionKey, TurnRequest
from agentd.core.verdict import Alarm, Empty, Failed, Quiet, Told, Verdict
from agentd.engine.background_turn import TOOLS, compose, run_background_turn
from agentd.engine.durable import when_space
from agentd.engine.watchers import NullSink

ISOLATED = SessionKey("isolated:jobs")  # constant, so that jobs create no other sessions


class Reminders:
    """Puts the text of a reminder, the owner's own words, into the outbox, in the transaction that
    uses the slot. No model is involved. The alert goes to `recipients`; `wake` tells the alerts'
    dispatcher.
    """

    def __init__(
        self,
        book: JobStore,
        clock: Clock,
        wake: Callable[[], None],
        recipients: Recipients,
    ) -> None:
        self._book = book
        self._clock = clock
        self._wake = wake
        self._recipients = recipients

    def is_free(self, job: Job) -> bool:
        """Return True: a reminder can always run."""
        return True

    async def run(self, job: Job, step: JobStep) -> JobRun | None:
        """Send the reminder; return None if this slot was used before. Raises StorageError."""
        slot = step.due or self._clock.now()
        # Different for each slot, so that the same text is not dropped as a duplicate.
        digest = hashlib.sha256(f"job {job.id} {slot.isoformat()}".encode()).hexdigest()
        # Urgent, because the owner has chosen the time: quiet hours of a sink do not apply.
        alert = self._recipients.alert(job.what.text, "job", digest, severity=AlertSeverity.URGENT)
        ending = Ending(JobOutcome.ALERT, JobReason.REMINDER, job.what.text)
        run = await self._book.record(step, ending, alert)
        if run is not None:
            self._wake()
        return run


class RunDependencies(Struct, frozen=True):
    """The parts of the daemon that a question uses. `own` runs work to its end even if the caller
    is cancelled, until the daemon stops; `wake` tells the alerts' dispatcher.
    """

    clock: Clock
    book: JobStore
    ledger: Ledger
    turns: TurnRunner
    breaker: Breaker
    own: Callable[[Coroutine[Any, Any, JobRun | None]], Awaitable[JobRun | None]]
    over_budget: Callable[[], Awaitable[bool]]
    wake: Callable[[], None]


class Questions:
    """Asks one question at a time, in a silent turn, and sends the reply as an alert unless it is
    quiet. `prompt` precedes the job's own text; alerts go to `recipients`.

    A question that has begun is independent of its caller: if a client disconnects or a tick is
    cancelled, the reply is still stored.
    """

    def __init__(
        self,
        settings: JobsSettings,
        deps: RunDependencies,
        prompt: str,
        recipients: Recipients,
    ) -> None:
        self._settings = settings
        self._deps = deps
        self._prompt = prompt
        self._recipients = recipients
        self._is_asking = False

    def is_free(self, job: Job) -> bool:
        """Whether neither another question nor a turn of the job's session is running."""
        return not self._is_asking and not self._deps.turns.is_busy(_session(job))

    async def run(self, job: Job, step: JobStep) -> JobRun | None:
        """Ask the question, or skip it for a reason; return None if this slot was used before.
        Raises StorageError, and Busy, without using the slot, if the slot has to wait.
        """
        reason = await self._blocking_reason(job)
        if reason is JobReason.BUSY and step.due is not None:
            # JobLine found the session free, but it became busy during the check of the budget.
            raise Busy(f"the conversation of job {job.id} is taken")
        if reason is not None:
            ending = Ending(JobOutcome.SKIPPED, reason)
            step, alert = self._put_off(job, step, ending)
            run = await self._deps.book.record(step, ending, alert)
            if alert is not None:
                self._deps.wake()
            return run
        self._is_asking = True
        return await self._deps.own(self._use(job, step))

    async def _use(self, job: Job, step: JobStep) -> JobRun | None:
        try:
            run_id = await self._deps.book.begin(step)
            if run_id is None:
                return None
            failpoints.hit("job.begun")
            return await self._ask(job, step, run_id)
        finally:
            self._is_asking = False

    async def _blocking_reason(self, job: Job) -> JobReason | None:
        if await self._deps.over_budget():
            return JobReason.BUDGET
        if self._deps.breaker.is_open():
            return JobReason.BREAKER_OPEN
        return None if self.is_free(job) else JobReason.BUSY

    async def _ask(self, job: Job, step: JobStep, run_id: int) -> JobRun | None:
        settings, deps = self._settings, self._deps
        began = deps.clock.now()
        request = self._request(job, run_id, began)
        verdict = await run_background_turn(
            deps.turns, request, NullSink(), settings.timeout, settings.ack_max_chars
        )
        failpoints.hit("job.verdict")
        ending = await self._ending(verdict, began)
        alert = None
        if ending.reason is JobReason.ALERT:
            text, tainted = ending.text, isinstance(verdict, Alarm) and verdict.tainted
            alert = self._recipients.alert(text, "job", alert_digest(text), tainted=tainted)
        elif ending.outcome is JobOutcome.FAILED and ending.reason is not JobReason.INTERRUPTED:
            later, alert = self._put_off(job, step, ending)
            if later is not step:
                # Before storing the end: a crash in between asks once more, but loses no question.
                todo = replace(later, due=None, missed=None)
                await when_space(deps.clock, deps.book.pass_over, todo)
        # The slot is used and the reply has been paid for, so on a full disk wait for space.
        run = await when_space(deps.clock, deps.book.end, run_id, ending, alert)
        if alert is not None or ending.outcome is JobOutcome.ALERT:
            deps.wake()
        return run

    def _put_off(self, job: Job, step: JobStep, ending: Ending) -> tuple[JobStep, NewAlert | None]:
        """Return how a job continues whose question was not answered, and the alert about that, if
        any. A question with a single date has no further slot, so it gets a new due time; after the
        last try the owner is alerted.
        """
        if step.due is None or not isinstance(job.what.schedule, At):
            return step, None
        if (due := again(job.runs, self._deps.clock.now())) is not None:
            return replace(step, next_due=due), None
        why = ending.text or f"its last try ended with {ending.reason}"
        text = f"The question of job {job.id} could not be asked: {job.what.text}\n\n{why}"
        digest = alert_digest(f"job {job.id} was not asked")
        return step, self._recipients.alert(text, "job", digest, severity=AlertSeverity.WARNING)

    def _request(self, job: Job, run_id: int, now: datetime) -> TurnRequest:
        light = job.what.session is JobSession.ISOLATED
        return TurnRequest(
            session=_session(job),
            text=compose(self._prompt, "Job", job.what.text, now, self._deps.clock.zone),
            message_id=f"job:{run_id}",
            origin=Origin.JOB,
            context=PromptScope.LIGHT if light else PromptScope.SESSION,
            model=job.what.model or None,
            # Nobody is there to approve writes of an isolated session.
            tools=(TOOLS - {"memory_write"} if light else TOOLS) | {OTHERS},
        )

    async def _ending(self, verdict: Verdict | Failed, began: datetime) -> Ending:
        # All that was spent since `began` is this question's: no other one runs at the time.
        tokens, cost = await self._deps.ledger.spending(began, Origin.JOB)
        match verdict:
            case Quiet(text):
                outcome, reason = JobOutcome.QUIET, JobReason.ACK
            case Told(text, is_repetition=True):
                outcome, reason = JobOutcome.QUIET, JobReason.DUPLICATE
            case Told(text):
                outcome, reason = JobOutcome.ALERT, JobReason.NOTIFY
            case Alarm(text):
                outcome, reason = JobOutcome.ALERT, JobReason.ALERT
            case Empty():
                outcome, reason, text = JobOutcome.FAILED, JobReason.EMPTY_REPLY, ""
            case Failed(text, is_over_budget=True):
                outcome, reason = JobOutcome.FAILED, JobReason.BUDGET
            case Failed(text, is_cut):
                outcome = JobOutcome.FAILED
                reason = JobReason.INTERRUPTED if is_cut else JobReason.PROVIDER_ERROR
            case _:
                assert_never(verdict)
        return Ending(outcome, reason, text, tokens, cost)


def _session(job: Job) -> SessionKey:
    return MAIN if job.what.session is JobSession.MAIN else ISOLATED
