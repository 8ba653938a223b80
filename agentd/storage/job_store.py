"""The JobStore in SQLite."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from msgspec.structs import replace

from agentd.core.alert import NewAlert
from agentd.core.errors import Busy, NotFound
from agentd.core.health import Problem
from agentd.core.job import (
    At,
    Cron,
    Ending,
    Every,
    Job,
    JobKind,
    JobOutcome,
    JobReason,
    JobRun,
    JobSession,
    JobStep,
    Misfire,
    NewJob,
    Schedule,
    schedule_options,
)
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.text import well_formed
from agentd.core.times import parse_duration
from agentd.storage.codec import UnreadableRows, dumps, maybe_moment, maybe_stamp, moment, stamp
from agentd.storage.outbox import put_alert
from agentd.storage.sqlite import Database

_ADD = """
INSERT INTO jobs
(text, schedule, kind, session, misfire, model, created_by, created_at, call_key, next_due)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *
"""
_BY_KEY = "SELECT * FROM jobs WHERE call_key = ?"
_TO_COME = "SELECT * FROM jobs WHERE next_due IS NOT NULL ORDER BY id"
_ACTIVE = "SELECT count(*) FROM jobs WHERE next_due IS NOT NULL"
_MISSED = """
INSERT INTO job_runs (job_id, at, due, until, outcome, reason) VALUES (?, ?, ?, ?, 'missed', 'late')
"""
_BEGIN = """
INSERT INTO job_runs (job_id, at, due) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id
"""
_END = """
UPDATE job_runs SET outcome = ?, reason = ?, text = ?, tokens = ?, cost_usd = ?
WHERE id = ? AND outcome IS NULL RETURNING *
"""
_INTERRUPT = "UPDATE job_runs SET outcome = 'failed', reason = 'interrupted' WHERE outcome IS NULL"
_NEWEST = "SELECT * FROM job_runs WHERE outcome IS NOT NULL ORDER BY id DESC LIMIT ?"
_NEWEST_OF = """
SELECT * FROM job_runs WHERE outcome IS NOT NULL AND job_id = ? ORDER BY id DESC LIMIT ?
"""
_USED = "SELECT due FROM job_runs WHERE job_id = ? AND due > ? AND until IS NULL"


class SqliteJobStore:
    """The JobStore of the state database. Secrets that `redactor` finds are not stored."""

    def __init__(self, db: Database, clock: Clock, redactor: Redactor | None = None) -> None:
        self._db = db
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._jobs = UnreadableRows("job", "`agentd jobs remove` takes it away: add it anew")
        self._runs = UnreadableRows("run", "it goes with its job: `agentd jobs remove`")

    def problems(self) -> tuple[Problem, ...]:
        """The jobs and runs whose rows are unreadable."""
        return (*self._jobs.problems(), *self._runs.problems())

    async def add(self, job: NewJob, next_due: datetime, *, most: int, key: str = "") -> Job:
        """See JobBook. Raises Busy if there are `most` active jobs already."""
        now = self._clock.now()
        job = replace(job, text=self._redactor.kept(job.text).text)

        def insert(conn: sqlite3.Connection) -> Job:
            if key and (known := conn.execute(_BY_KEY, (key,)).fetchone()):
                return self._jobs.one(known, _load_job)
            if conn.execute(_ACTIVE).fetchone()[0] >= most:
                raise Busy(
                    f"there are {most} jobs already",
                    cure="remove one with `agentd jobs remove`, or raise [jobs] max_jobs",
                )
            (row,) = conn.execute(_ADD, (*_columns(job), stamp(now), key or None, stamp(next_due)))
            return _load_job(row)

        return await self._db.write(insert)

    async def by_key(self, key: str) -> Job | None:
        """See JobBook."""
        row = await self._db.read(lambda conn: conn.execute(_BY_KEY, (key,)).fetchone())
        return self._jobs.one(row, _load_job) if row else None

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        """See JobBook."""
        query = "SELECT * FROM jobs ORDER BY id" if past else _TO_COME
        found = await self._db.read(lambda conn: conn.execute(query).fetchall())
        return self._jobs.readable(found, _load_job)

    async def get(self, job_id: int) -> Job:
        """See JobBook. Raises NotFound if there is none."""
        query = "SELECT * FROM jobs WHERE id = ?"
        row = await self._db.read(lambda conn: conn.execute(query, (job_id,)).fetchone())
        if row is None:
            raise _unknown(job_id)
        return self._jobs.one(row, _load_job)

    async def remove(self, job_id: int) -> Job:
        """See JobBook. Raises NotFound if there is none. An unreadable job is returned with its
        text only.
        """

        def delete(conn: sqlite3.Connection) -> sqlite3.Row:
            found = conn.execute("DELETE FROM jobs WHERE id = ? RETURNING *", (job_id,)).fetchall()
            if not found:
                raise _unknown(job_id)
            row: sqlite3.Row = found[0]
            return row

        row = await self._db.write(delete)
        (job,) = self._jobs.readable((row,), _load_job) or (_remains(row),)
        self._jobs.gone(job_id)
        return job

    async def pass_over(self, step: JobStep) -> None:
        """See JobBook."""
        now = self._clock.now()

        def advance(conn: sqlite3.Connection) -> None:
            if _exists(conn, step.job_id):
                _advance(conn, step, now)

        await self._db.write(advance)

    async def begin(self, step: JobStep) -> int | None:
        """See JobRuns."""
        now = self._clock.now()
        return await self._db.write(lambda conn: _begin(conn, step, now))

    async def record(
        self, step: JobStep, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """See JobRuns."""
        now = self._clock.now()

        def run(conn: sqlite3.Connection) -> JobRun | None:
            run_id = _begin(conn, step, now)
            return None if run_id is None else _end(conn, run_id, ending, alert, now)

        return await self._db.write(run)

    async def end(
        self, run_id: int, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """See JobRuns."""
        now = self._clock.now()
        return await self._db.write(lambda conn: _end(conn, run_id, ending, alert, now))

    async def interrupt(self) -> int:
        """See JobRuns. Returns how many runs were interrupted."""
        return await self._db.execute(_INTERRUPT, ())

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        """See JobRuns."""
        query, values = (_NEWEST, (limit,)) if job_id is None else (_NEWEST_OF, (job_id, limit))
        found = await self._db.read(lambda conn: conn.execute(query, values).fetchall())
        return self._runs.readable(found, _load_run)

    async def used(self, job_id: int, since: datetime) -> frozenset[datetime]:
        """See JobRuns."""
        values = (job_id, stamp(since))
        found = await self._db.read(lambda conn: conn.execute(_USED, values).fetchall())
        return frozenset(moment(row["due"]) for row in found)


def _unknown(job_id: int) -> NotFound:
    return NotFound(f"there is no job {job_id}", cure="`agentd jobs list` shows them all")


def _exists(conn: sqlite3.Connection, job_id: int) -> bool:
    return conn.execute("SELECT 1 FROM jobs WHERE id = ?", (job_id,)).fetchone() is not None


def _advance(conn: sqlite3.Connection, step: JobStep, now: datetime) -> None:
    """Record the missed slots, and store the next due time."""
    if (missed := step.missed) is not None:
        span = (stamp(missed.first), stamp(missed.last))
        conn.execute(_MISSED, (step.job_id, stamp(now), *span))
    conn.execute(
        "UPDATE jobs SET next_due = ? WHERE id = ?", (maybe_stamp(step.next_due), step.job_id)
    )


def _begin(conn: sqlite3.Connection, step: JobStep, now: datetime) -> int | None:
    if not _exists(conn, step.job_id):
        return None
    if step.due is not None:
        _advance(conn, step, now)
    found = conn.execute(_BEGIN, (step.job_id, stamp(now), maybe_stamp(step.due))).fetchall()
    if not found:
        return None
    conn.execute("UPDATE jobs SET runs = runs + 1 WHERE id = ?", (step.job_id,))
    return int(found[0]["id"])


def _end(
    conn: sqlite3.Connection, run_id: int, ending: Ending, alert: NewAlert | None, now: datetime
) -> JobRun | None:
    if not conn.execute("SELECT 1 FROM job_runs WHERE id = ?", (run_id,)).fetchone():
        return None  # the job was removed while it ran: its result is dropped
    told = (ending.outcome, ending.reason)
    if alert is not None and put_alert(conn, alert, now) is None:
        told = (JobOutcome.QUIET, JobReason.DUPLICATE)
    values = (*told, well_formed(ending.text), ending.tokens, ending.cost_usd, run_id)
    found = conn.execute(_END, values).fetchall()
    if not found:
        raise NotFound(f"run {run_id} has ended already")
    return _load_run(found[0])


def _columns(job: NewJob) -> tuple[str, ...]:
    schedule = dumps(schedule_options(job.schedule))
    text = well_formed(job.text)
    return (text, schedule, job.kind, job.session, job.misfire, job.model, job.created_by)


def _load_job(row: sqlite3.Row) -> Job:
    what = NewJob(
        text=row["text"],
        schedule=_load_schedule(json.loads(row["schedule"])),
        kind=JobKind(row["kind"]),
        session=JobSession(row["session"]),
        misfire=Misfire(row["misfire"]),
        model=row["model"],
        created_by=row["created_by"],
    )
    due = maybe_moment(row["next_due"])
    return Job(row["id"], what, moment(row["created_at"]), due, row["runs"])


def _remains(row: sqlite3.Row) -> Job:
    """Return what can be read of an unreadable job."""
    at = moment(row["created_at"])
    return Job(row["id"], NewJob(row["text"], At(at)), at, None, row["runs"])


def _load_schedule(fields: dict[str, str]) -> Schedule:
    match fields:
        case {"at": at}:
            return At(moment(at))
        case {"every": every, "anchor": anchor}:
            return Every(parse_duration(every), moment(anchor))
    return Cron(fields["cron"], fields["zone"])


def _load_run(row: sqlite3.Row) -> JobRun:
    ending = Ending(
        JobOutcome(row["outcome"]),
        JobReason(row["reason"]),
        row["text"],
        row["tokens"],
        row["cost_usd"],
    )
    due, until = maybe_moment(row["due"]), maybe_moment(row["until"])
    return JobRun(row["id"], row["job_id"], moment(row["at"]), due, until, ending)
