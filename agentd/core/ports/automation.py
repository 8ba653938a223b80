"""Ports of the heartbeat, of jobs, of their schedules, and of the alerts that reach the user."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from agentd.core.alert import Alert, Delivery, NewAlert
from agentd.core.beat import Beat, BeatFinding, HeartbeatState, ItemState, Reason
from agentd.core.job import Ending, Job, JobRun, JobStep, NewJob, Schedule
from agentd.core.watch import WatchedEntry


class BeatStore(Protocol):
    """The heartbeat's stored state: its schedule, its history, and what is known of checklist
    items.
    """

    async def heartbeat(self) -> HeartbeatState:
        """Return the stored schedule: next due time and pause."""

    async def schedule(self, next_due: datetime | None) -> None:
        """Store when the next beat is due; None if none is to come."""

    async def pause(self, until: datetime | None) -> None:
        """Pause the heartbeat from now until the given time; None resumes it."""

    async def begin_beat(
        self,
        due: datetime | None,
        next_due: datetime | None,
        file_hash: str,
        *,
        listed: Collection[str] | None = None,
        entries: Sequence[str] = (),
        forced: bool = False,
    ) -> int:
        """Store a running beat and the next due time in one transaction; return the beat's id.
        `entries` are the hashes of the dated entries that are due.

        `listed` are the hashes of every item and entry in the checklist: the stored states of all
        others are deleted. None (the checklist is missing or cannot be read) deletes nothing.
        """

    async def end_beat(
        self,
        beat_id: int,
        findings: Sequence[BeatFinding],
        *,
        tokens: int = 0,
        cost_usd: float = 0.0,
    ) -> tuple[Beat, tuple[Alert, ...]]:
        """Finish a beat with the findings of its parts (at least one), in one transaction: mark
        their items done, store what was seen of watched entries, and put their alerts into the
        outbox.

        An alert with the digest of one that was told within 24 hours is not put; its finding counts
        as quiet, with reason `duplicate`. The beat's outcome is that of `main_finding`. Returns the
        beat and the alerts that were put. Raises NotFound if the beat is not running.
        """

    async def skip_beat(
        self, due: datetime | None, next_due: datetime | None, reason: Reason, file_hash: str = ""
    ) -> Beat:
        """Store a skipped beat and the next due time in one transaction. With `due` None (the beat
        was asked for, not scheduled) the next due time stays as it is.
        """

    async def interrupt_beats(self) -> int:
        """Mark beats that a crash left running as failed with reason `interrupted`; return how
        many.
        """

    async def beats(self, limit: int) -> tuple[Beat, ...]:
        """Return the newest `limit` finished beats, newest first."""

    async def items(self, hashes: Sequence[str]) -> Mapping[str, ItemState]:
        """Return the states of these checklist items by hash; an unknown item is stored as first
        seen now.
        """

    async def watches(self, entries: Sequence[str]) -> Mapping[str, WatchedEntry]:
        """Return what was last seen of the watched entries among these, by hash."""


class JobBook(Protocol):
    """The stored jobs."""

    async def add(self, job: NewJob, next_due: datetime, *, most: int, key: str = "") -> Job:
        """Store a job and return it. If a job is stored under the same key already, return that one
        and change nothing. Raises Busy when `most` jobs already have slots to come.
        """

    async def by_key(self, key: str) -> Job | None:
        """Return the job stored under the key; None if there is none."""

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        """Return the jobs that have slots to come, or with `past` all jobs, oldest first."""

    async def get(self, job_id: int) -> Job:
        """Return the job. Raises NotFound."""

    async def remove(self, job_id: int) -> Job:
        """Delete a job and its history; return the job. Raises NotFound."""

    async def pass_over(self, step: JobStep) -> None:
        """Store the step's missed slots and the job's next due time."""


class JobRuns(Protocol):
    """The runs of jobs: what came of each slot."""

    async def begin(self, step: JobStep) -> int | None:
        """Use the step's slot: store the missed slots, a running run and the next due time in one
        transaction; return the run's id.

        Returns None if the job is gone, or if the slot was used before (the due time moves all the
        same). A step without a slot leaves the due time as it is.
        """

    async def record(
        self, step: JobStep, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """Do `begin` and `end` in one transaction."""

    async def end(
        self, run_id: int, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """Finish a run and put its alert into the outbox, both or neither. If an equal alert was
        put within 24 hours, the run is stored as QUIET with reason `duplicate`. Returns None if the
        job is gone.
        """

    async def interrupt(self) -> int:
        """Mark runs that a crash left running as failed with reason `interrupted`; return how
        many.
        """

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        """Return the newest `limit` finished runs, newest first, of one job or of all."""

    async def used(self, job_id: int, since: datetime) -> frozenset[datetime]:
        """Return the job's slots after `since` that have been used."""


class JobStore(JobBook, JobRuns, Protocol):
    """The jobs and their runs. At most one run uses a slot, also after a crash."""


class Triggers(Protocol):
    """Computes the slots of schedules."""

    def check(self, schedule: Schedule) -> None:
        """Raise InvalidRequest, with a correct example, if the schedule is malformed."""

    def after(self, schedule: Schedule, moment: datetime) -> datetime | None:
        """Return the schedule's first slot after the moment; None if there is none."""


class Outbox(Protocol):
    """The stored alerts and their deliveries: each alert reaches each of its sinks at least
    once.
    """

    async def put(self, alert: NewAlert) -> Alert | None:
        """Store an alert with a pending delivery to each of its sinks, and return it.

        Returns None, storing nothing, if an alert with the same digest was put within 24 hours and
        was either acknowledged, or sent to (or is still pending for) a sink that tells this one too
        (`told_by`). An earlier alert that reached nobody therefore never suppresses a new one. Nor
        does a tainted alert suppress one that is not tainted.
        """

    async def due(self, recovered: Collection[str] = ()) -> tuple[Delivery, ...]:
        """Return the deliveries that are due, oldest first; for the sinks in `recovered` also those
        that wait for their next try.

        A delivery that a wrong clock put off counts as due: one tried or put at a time later than
        now, or one that waits for more than two days.
        """

    async def next_due(self) -> datetime | None:
        """Return when the next delivery is to be tried; None if none is pending."""

    async def mark_sent(self, alert_id: int, sink: str) -> None:
        """Record that the sink took the alert."""

    async def retry(
        self, alert_id: int, sink: str, until: datetime | None, error: str = ""
    ) -> None:
        """Record a failed try and its error. The next try comes at `until`; None gives up."""

    async def hold(self, alert_id: int, sink: str, until: datetime) -> None:
        """Put the delivery off to `until`, or to the time of other deliveries held for that sink if
        that is sooner. This does not count as a try.
        """

    async def alerts(self, limit: int, *, unacked: bool = False) -> tuple[Alert, ...]:
        """Return the newest `limit` alerts, newest first; with `unacked` only those not
        acknowledged.
        """

    async def ack(self, alert_id: int) -> Alert:
        """Mark an alert as seen by the user: its pending deliveries are withdrawn. Raises
        NotFound.
        """


class AlertSink(Protocol):
    """One way to reach the user."""

    @property
    def name(self) -> str:
        """The name of the sink in `[heartbeat] target` and in an alert's `delivered`."""

    async def send(self, alert: Alert) -> None:
        """Deliver the alert. Raises AgentdError when it did not arrive; the outbox then retries."""
