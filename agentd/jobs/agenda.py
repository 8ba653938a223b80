"""The list of jobs: what is put on it, what is taken off, and what comes next."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from agentd.domain.durations import format_duration
from agentd.domain.job import Cron, Job, JobRun, NewJob
from agentd.errors import InvalidRequest
from agentd.jobs.order import Order, understood
from agentd.jobs.settings import JobsSettings
from agentd.jobs.slots import After, upcoming
from agentd.ports import Clock, JobStore, Triggers

log = structlog.get_logger()

_SHOWN = 5
_COMPARED = 20  # slots of a cron expression that are looked at for how close they come


class Agenda:
    """Takes orders and tells what will happen. `wake` is called when the due times have changed."""

    def __init__(
        self,
        settings: JobsSettings,
        book: JobStore,
        triggers: Triggers,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._book = book
        self._triggers = triggers
        self._clock = clock
        self._wake = wake

    def read(self, order: Order) -> tuple[NewJob, datetime]:
        """The job that is meant and its first slot, checked. Raises InvalidRequest with an example."""
        if not self._settings.enabled:
            raise InvalidRequest("jobs are off", cure="set [jobs] enabled = true")
        now = self._clock.now()
        job = understood(order, now, self._clock.zone, self._settings)
        self._triggers.check(job.schedule)
        after = self._after(job)
        slots = upcoming(after(now), after, _COMPARED if isinstance(job.schedule, Cron) else 1)
        if not slots:
            raise InvalidRequest("that time never comes", cure='write one like "0 9 * * 1-5"')
        least = self._settings.min_interval
        if any(b - a < least for a, b in itertools.pairwise(slots)):
            msg = f"that comes more often than every {format_duration(least)}"
            raise InvalidRequest(msg, cure='write fewer times, like "0 9 * * 1-5"')
        return job, slots[0]

    async def add(self, job: NewJob, first: datetime, *, key: str = "") -> Job:
        """Put a job that `read` gave on the list; once for each key. Raises Busy when it is full."""
        stored = await self._book.add(job, first, most=self._settings.max_jobs, key=key)
        log.info("job_added", job=stored.id, kind=job.kind, created_by=job.created_by)
        self._wake()
        return stored

    async def find(self, key: str) -> Job | None:
        """The job that was put on the list under the key."""
        return await self._book.by_key(key)

    async def get(self, job_id: int) -> Job:
        """A job of the list. Raises NotFound."""
        return await self._book.get(job_id)

    async def remove(self, job_id: int) -> Job:
        """Take a job off the list. Raises NotFound."""
        job = await self._book.remove(job_id)
        log.info("job_removed", job=job_id)
        return job

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        """The jobs that will run again; with `past` also those that are done."""
        return await self._book.jobs(past=past)

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        """What jobs came to, the newest first. Raises NotFound for an unknown job."""
        if job_id is not None:
            await self._book.get(job_id)
        return await self._book.runs(limit, job_id)

    def described(self, job: Job) -> dict[str, Any]:
        """A job and its next five times in the owner's zone: the shape in `agentd jobs list`."""
        try:
            times = upcoming(job.next_due, self._after(job.what), _SHOWN)
        except InvalidRequest:  # its zone has gone from the system: `status` says so
            times = ()
        zone = self._clock.zone
        return {**job.as_json(), "next": [at.astimezone(zone).isoformat() for at in times]}

    def _after(self, job: NewJob) -> After:
        return partial(self._triggers.after, job.schedule)
