"""The list of jobs: turns orders into jobs, adds, removes and lists them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import structlog

from agentd.automation.jobs.job_settings import JobsSettings
from agentd.automation.jobs.slots import After, upcoming
from agentd.core.errors import InvalidRequest
from agentd.core.job import (
    At,
    Cron,
    Every,
    Job,
    JobKind,
    JobRequest,
    JobRun,
    JobSession,
    Misfire,
    NewJob,
    Schedule,
)
from agentd.core.ports import Clock, JobStore, Triggers
from agentd.core.times import format_duration, parse_duration, parse_zone, read_instant

log = structlog.get_logger()

_MOST_CHARS = 4_000
_LONGEST = timedelta(days=3660)
_ONE_OF = (
    'give one of --at "2026-12-01 09:00", --in 2h, --every 1d, --cron "0 9 * * 1-5" '
    "(a tool call: at, every or cron)"
)
_SHOWN = 5
_COMPARED = 20  # slots of a cron expression that are checked against `min_interval`


def job_of_order(
    order: JobRequest, now: datetime, zone: ZoneInfo, settings: JobsSettings
) -> NewJob:
    """Return the job that the order describes; `zone` is used if the order names none. A cron
    expression is not checked here. Raises InvalidRequest with a correct example.
    """
    text = order.text.strip()
    if not text:
        raise InvalidRequest("the job has no text", cure="say what is to be done")
    if len(text) > _MOST_CHARS:
        raise InvalidRequest(
            f"the text has {len(text)} characters; at most {_MOST_CHARS} are allowed",
            cure="put the details into a file, and name the file",
        )
    return NewJob(
        text=text,
        schedule=_schedule(order, now, _zone(order.zone) or zone, settings),
        kind=_word(JobKind, order.kind, "kind"),
        session=_word(JobSession, order.session, "session"),
        misfire=_word(Misfire, order.misfire or settings.misfire, "misfire"),
        model=order.model.strip(),
        created_by=order.created_by,
    )


class Agenda:
    """Adds, removes and lists jobs, and says when they will run."""

    def __init__(
        self,
        settings: JobsSettings,
        book: JobStore,
        triggers: Triggers,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._book = book
        self._triggers = triggers
        self._clock = clock
        self._wake: Callable[[], None] = lambda: None

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake`, which must not block, whenever a job was added, from now on."""
        self._wake = wake

    def read(self, order: JobRequest) -> tuple[NewJob, datetime]:
        """Return the job that the order describes and its first slot, both checked. Raises
        InvalidRequest with an example.
        """
        if not self._settings.enabled:
            raise InvalidRequest("jobs are off", cure="set [jobs] enabled = true")
        now = self._clock.now()
        job = job_of_order(order, now, self._clock.zone, self._settings)
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
        """Add a job returned by `read` to the list, once for each key. Raises Busy if the list is
        full.
        """
        stored = await self._book.add(job, first, most=self._settings.max_jobs, key=key)
        log.info("job_added", job=stored.id, kind=job.kind, created_by=job.created_by)
        self._wake()
        return stored

    async def find(self, key: str) -> Job | None:
        """Return the job that was added under the key; None if there is none."""
        return await self._book.by_key(key)

    async def get(self, job_id: int) -> Job:
        """Return a job. Raises NotFound."""
        return await self._book.get(job_id)

    async def remove(self, job_id: int) -> Job:
        """Remove a job from the list and return it. Raises NotFound."""
        job = await self._book.remove(job_id)
        log.info("job_removed", job=job_id)
        return job

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        """Return the jobs that will run again, with `past` also those that are done."""
        return await self._book.jobs(past=past)

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        """Return the runs of a job, or of all, newest first. Raises NotFound for an unknown job."""
        if job_id is not None:
            await self._book.get(job_id)
        return await self._book.runs(limit, job_id)

    @property
    def zone(self) -> str:
        """The name of the owner's time zone, in which times are shown."""
        return self._clock.zone.key

    def described(self, job: Job) -> dict[str, Any]:
        """Return a job with its next five times in the owner's zone: the shape in `agentd jobs
        list`.
        """
        try:
            times = upcoming(job.next_due, self._after(job.what), _SHOWN)
        except InvalidRequest:  # its zone is no longer installed, which is reported as a problem
            times = ()
        zone = self._clock.zone
        return {**job.as_json(), "next": [at.astimezone(zone).isoformat() for at in times]}

    def _after(self, job: NewJob) -> After:
        return partial(self._triggers.after, job.schedule)


def _schedule(order: JobRequest, now: datetime, zone: ZoneInfo, settings: JobsSettings) -> Schedule:
    given = [word for word in (order.at, order.within, order.every, order.cron) if word.strip()]
    if len(given) != 1:
        what = "no time is given" if not given else "more than one kind of time is given"
        raise InvalidRequest(what, cure=_ONE_OF)
    if order.at.strip():
        return At(_instant(order.at.strip(), now, zone))
    if order.within.strip():
        return At(now + _duration(order.within, "in", timedelta()))
    if order.every.strip():
        return Every(_duration(order.every, "every", settings.min_interval), now)
    return Cron(" ".join(order.cron.split()), zone.key)


def _instant(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant that the text names. A local time that a clock change skips is shifted by
    the length of the gap; of one that occurs twice, the first is meant.
    """
    example = f"{(now + timedelta(days=1)).astimezone(zone):%Y-%m-%d} 09:00"
    try:
        instant = read_instant(text, zone) if ":" in text else None
    except ValueError:
        instant = None
    if instant is None:
        raise InvalidRequest(f"{text!r} is no date with a time", cure=f'write it like "{example}"')
    if instant <= now:
        told = f"{now.astimezone(zone):%Y-%m-%d %H:%M:%S}"
        msg = f"{text!r} is past: it is {told} now ({zone.key})"
        raise InvalidRequest(msg, cure=f'give a time to come, like "{example}"')
    return instant


def _duration(text: str, name: str, least: timedelta) -> timedelta:
    try:
        value = parse_duration(text)
    except ValueError:
        value = timedelta()
    if not value:
        raise InvalidRequest(
            f"{text!r} is no duration for {name!r}", cure='write it like "2h", "1h30m" or "1d"'
        )
    if value < least:
        msg = f"every {format_duration(value)} is too often"
        cure = f'"{format_duration(least)}" is the least ([jobs] min_interval)'
        raise InvalidRequest(msg, cure=cure)
    if value > _LONGEST:
        raise InvalidRequest(f"{text!r} is more than ten years", cure='write it like "30d"')
    return value


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if parse_zone(name) else None
    except ValueError as error:
        msg, _, cure = str(error).partition("; ")
        raise InvalidRequest(msg, cure=cure) from None


W = TypeVar("W", JobKind, JobSession, Misfire)


def _word(words: type[W], given: str, name: str) -> W:
    try:
        return words(given)
    except ValueError:
        known = " or ".join(f'"{word}"' for word in words)
        raise InvalidRequest(f"{given!r} is no {name}", cure=f"write {known}") from None
