"""The jobs at work: a line for reminders and one for questions, and runs by hand."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from agentd.domain.alert import Recipients
from agentd.domain.health import Problem
from agentd.domain.job import JobKind, JobRun, Step
from agentd.errors import NotFound
from agentd.jobs.line import Line, Work
from agentd.jobs.questions import Questions, Surroundings
from agentd.jobs.reminders import Reminders
from agentd.jobs.settings import JobsSettings
from agentd.ports import Triggers

log = structlog.get_logger()


class Jobs:
    """Runs jobs. `prompt` is what stands before a question, `recipients` are told."""

    def __init__(
        self,
        settings: JobsSettings,
        around: Surroundings,
        triggers: Triggers,
        prompt: str,
        recipients: Recipients,
    ) -> None:
        book, clock = around.book, around.clock
        self._book = book
        reminders = Reminders(book, clock, around.wake, recipients)
        questions = Questions(settings, around, prompt, recipients)
        self._works: Mapping[JobKind, Work] = {JobKind.REMIND: reminders, JobKind.ASK: questions}
        self.lines: Mapping[str, Line] = {
            "reminders": Line(JobKind.REMIND, settings, book, triggers, clock, reminders),
            "questions": Line(JobKind.ASK, settings, book, triggers, clock, questions),
        }

    async def recover(self) -> int:
        """Close the rows of runs that a crash cut; they are not run again. Returns how many."""
        count = await self._book.interrupt()
        if count:
            log.warning("job_runs_interrupted", count=count)
        return count

    def problems(self) -> tuple[Problem, ...]:
        """What keeps jobs from running."""
        return tuple(problem for line in self.lines.values() for problem in line.problems())

    async def run(self, job_id: int) -> JobRun:
        """Run a job now; its schedule stays as it is. Raises NotFound."""
        job = await self._book.get(job_id)
        run = await self._works[job.what.kind].run(job, Step(job_id, None, None))
        if run is None:
            raise NotFound(f"job {job_id} was removed while it ran")
        return run
