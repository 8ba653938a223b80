"""Runs jobs: one line for reminders, one for questions, and runs by request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import structlog

from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.jobs.runs import Questions, Reminders, RunDependencies
from agentd.automation.jobs.slots import After, earliest_unused, step
from agentd.core.alert import Recipients
from agentd.core.errors import Busy, InvalidRequest, NotFound
from agentd.core.health import Problem
from agentd.core.job import Job, JobKind, JobRun, JobStep
from agentd.core.ports import Clock, JobStore, Triggers

log = structlog.get_logger()

_RETRY_BUSY = 30.0  # seconds


class JobWork(Protocol):
    """What a job of one kind does in a slot."""

    def is_free(self, job: Job) -> bool:
        """Whether the job can run now."""

    async def run(self, job: Job, step: JobStep) -> JobRun | None:
        """Run the job in the step's slot; return None if the slot was used before. Raises
        StorageError, and Busy, without using the slot, if the job can no longer run now.
        """


class JobLine:
    """Runs the jobs of one kind on time. Every slot is used once or recorded as missed.

    Reminders and questions have separate lines, so that a slow model delays no reminder.
    """

    def __init__(
        self,
        kind: JobKind,
        settings: JobsSettings,
        book: JobStore,
        triggers: Triggers,
        clock: Clock,
        work: JobWork,
    ) -> None:
        self._kind = kind
        self._settings = settings
        self._book = book
        self._triggers = triggers
        self._clock = clock
        self._work = work
        self._seen: datetime | None = None  # the wall-clock time of the last tick
        self._lost: dict[int, str] = {}
        self._waiting: dict[int, float] = {}  # job → monotonic time of its next try, if busy

    async def tick(self) -> None:
        """Run the due jobs. To be called at the due time and at least once a minute. Raises
        StorageError.
        """
        if not self._settings.enabled:
            return
        await self._settle()
        while (found := await self._next()) is not None:
            job, todo = found
            if todo.due is None:
                await self._book.pass_over(todo)
            elif self._work.is_free(job):
                await self._run(job, todo)
            else:
                self._wait(job)

    async def next_due(self) -> datetime | None:
        """Return when to call `tick` next; None while no job will run."""
        if not self._settings.enabled:
            return None
        return min([self._next_look(job) for job in await self._jobs()], default=None)

    def problems(self) -> tuple[Problem, ...]:
        """Return the jobs whose schedule is no longer valid, for instance because their time zone
        is no longer installed.
        """
        return tuple(
            Problem(
                "job_lost", f"job {job_id} no longer runs: {message}", "remove it, and add it anew"
            )
            for job_id, message in self._lost.items()
        )

    async def _jobs(self, *, past: bool = False) -> list[Job]:
        """Return the jobs that will run again, with `past` all jobs, without those whose schedule
        is invalid on this system: such a job must not stop the others.
        """
        jobs = [job for job in await self._book.jobs(past=past) if job.what.kind is self._kind]
        lost: dict[int, str] = {}
        for job in jobs:
            try:
                self._triggers.check(job.what.schedule)
            except InvalidRequest as error:
                lost[job.id] = error.message
        if lost.keys() - self._lost.keys():
            log.error("jobs_lost", jobs=sorted(lost))
        self._lost = lost
        return [job for job in jobs if job.id not in lost]

    async def _next(self) -> tuple[Job, JobStep] | None:
        """Return the job that has been due for longest, and the step to take."""
        jobs = await self._jobs()
        self._waiting = {job.id: at for job in jobs if (at := self._waiting.get(job.id))}
        now = self._clock.now()
        ready = [job for job in jobs if self._next_look(job) <= now]
        if not ready:
            return None
        job = min(ready, key=lambda job: (job.next_due or now, job.id))
        return job, step(job, self._after(job), now, self._settings.rules)

    async def _run(self, job: Job, todo: JobStep) -> None:
        self._waiting.pop(job.id, None)
        try:
            run = await self._work.run(job, todo)
        except Busy:
            self._wait(job)
            return
        if todo.missed is not None:
            log.warning("job_slots_missed", job=job.id, until=todo.missed.last.isoformat())
        if run is not None:
            log.info("job_done", job=job.id, outcome=run.ending.outcome, reason=run.ending.reason)

    def _wait(self, job: Job) -> None:
        self._waiting[job.id] = self._clock.monotonic() + _RETRY_BUSY

    async def _settle(self) -> None:
        """After a clock change, move due times that a wrong clock has put too far ahead to the next
        unused slot.
        """
        now = self._clock.now()
        was_set = self._seen is None or now < self._seen
        self._seen = now
        if not was_set:
            return
        # Finished jobs, too: their slots may have been passed over while the clock was ahead.
        for job in await self._jobs(past=True):
            if self._after(job)(now) is None:  # finished for good; there may be many of these
                continue
            used = await self._book.used(job.id, now)
            due = earliest_unused(job.next_due, self._after(job), now, used)
            if due is not None and due != job.next_due:
                log.warning("job_brought_forward", job=job.id, due=due.isoformat())
                await self._book.pass_over(JobStep(job.id, None, due))

    def _next_look(self, job: Job) -> datetime:
        """Return when the job must be checked next."""
        assert job.next_due is not None
        if job.id not in self._waiting:
            return job.next_due
        wait = max(0.0, self._waiting[job.id] - self._clock.monotonic())
        return max(job.next_due, self._clock.now() + timedelta(seconds=wait))

    def _after(self, job: Job) -> After:
        return partial(self._triggers.after, job.what.schedule)


class Jobs:
    """Runs jobs. `prompt` precedes each question, alerts go to `recipients`."""

    def __init__(
        self,
        settings: JobsSettings,
        deps: RunDependencies,
        triggers: Triggers,
        prompt: str,
        recipients: Recipients,
    ) -> None:
        book, clock = deps.book, deps.clock
        self._book = book
        reminders = Reminders(book, clock, deps.wake, recipients)
        questions = Questions(settings, deps, prompt, recipients)
        self._works: Mapping[JobKind, JobWork] = {JobKind.REMIND: reminders, JobKind.ASK: questions}
        self.lines: Mapping[str, JobLine] = {
            "reminders": JobLine(JobKind.REMIND, settings, book, triggers, clock, reminders),
            "questions": JobLine(JobKind.ASK, settings, book, triggers, clock, questions),
        }

    async def recover(self) -> int:
        """Close the rows of runs that a crash interrupted; return how many. These runs are not
        repeated.
        """
        count = await self._book.interrupt()
        if count:
            log.warning("job_runs_interrupted", count=count)
        return count

    def problems(self) -> tuple[Problem, ...]:
        """Return what prevents jobs from running."""
        return tuple(problem for line in self.lines.values() for problem in line.problems())

    async def run(self, job_id: int) -> JobRun:
        """Run a job now and return the run; the schedule stays unchanged. Raises NotFound."""
        job = await self._book.get(job_id)
        run = await self._works[job.what.kind].run(job, JobStep(job_id, None, None))
        if run is None:
            raise NotFound(f"job {job_id} was removed while it ran")
        return run
