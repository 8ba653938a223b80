"""Beats and jobs, when they are due, and the alerts by which they reach the user."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from agentd.core.alert import Alert, Delivery, NewAlert
from agentd.core.beat import Beat, BeatFinding, HeartbeatState, ItemState, Reason
from agentd.core.job import Ending, Job, JobRun, NewJob, Schedule, Step
from agentd.core.watch import WatchedEntry


class BeatStore(Protocol):
    """The heartbeat's memory."""

    async def heartbeat(self) -> HeartbeatState:
        """What is persisted of the schedule."""

    async def schedule(self, next_due: datetime | None) -> None:
        """Set when the next beat is due."""

    async def pause(self, until: datetime | None) -> None:
        """Pause until then; None resumes."""

    async def begin_beat(
        self,
        due: datetime | None,
        next_due: datetime | None,
        file_hash: str,
        *,
        listed: Collection[str] | None = None,
    ) -> int:
        """Store a running beat and the next due time in one transaction; returns its id. `listed` are the
        hashes of everything in the checklist: what is known of other items and entries is forgotten. None,
        where the checklist cannot be read or is not there, forgets nothing.
        """

    async def end_beat(
        self,
        beat_id: int,
        findings: Sequence[BeatFinding],
        *,
        tokens: int = 0,
        cost_usd: float = 0.0,
    ) -> tuple[Beat, tuple[Alert, ...]]:
        """Finish a beat with what its parts came to, one at least: mark their items done, keep what was
        seen of watched entries and put their alerts into the outbox, all or nothing. An alert whose digest
        was told within 24 hours is not put again, and its finding counts as quiet, `duplicate`. The beat's
        outcome is that of its `main_finding`. The alerts that were put come back beside it. Raises NotFound
        for a beat that is not running.
        """

    async def skip_beat(
        self, due: datetime | None, next_due: datetime | None, reason: Reason, file_hash: str = ""
    ) -> Beat:
        """Store a skipped beat and the next due time in one transaction. A skip without a due time, of a beat
        asked for, leaves the next due time alone.
        """

    async def interrupt_beats(self) -> int:
        """Mark beats that a crash left running as failed with reason `interrupted`."""

    async def beats(self, limit: int) -> tuple[Beat, ...]:
        """The newest beats first, finished ones only."""

    async def items(self, hashes: Sequence[str]) -> Mapping[str, ItemState]:
        """The states of these checklist items; those seen for the first time are stored as seen now."""

    async def watches(self, entries: Sequence[str]) -> Mapping[str, WatchedEntry]:
        """What was seen of those of the entries, by their hashes, that are watched."""


class JobBook(Protocol):
    """The jobs."""

    async def add(self, job: NewJob, next_due: datetime, *, most: int, key: str = "") -> Job:
        """Store a job. The job that was stored under the same key comes back instead, with nothing
        changed. Raises Busy when `most` jobs have slots to come.
        """

    async def by_key(self, key: str) -> Job | None:
        """The job that was stored under the key, if it is still there."""

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        """The jobs that have slots to come, or all, the oldest first."""

    async def get(self, job_id: int) -> Job:
        """The job. Raises NotFound."""

    async def remove(self, job_id: int) -> Job:
        """Forget a job and its history. Raises NotFound."""

    async def pass_over(self, step: Step) -> None:
        """Store what was missed, and the next due time."""


class JobRuns(Protocol):
    """What came of their slots."""

    async def begin(self, step: Step) -> int | None:
        """Use the slot: store what was missed, a running run and the next due time in one
        transaction; returns the run's id. None if the job is gone or the slot was used before, which
        moves the due time all the same. A step without a slot leaves the due time alone.
        """

    async def record(
        self, step: Step, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """`begin` and `end` in one transaction."""

    async def end(
        self, run_id: int, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        """Finish a run and put its alert into the outbox, both or neither. If that alert was put
        within 24 hours the run is stored as QUIET with reason `duplicate`. None if the job is gone.
        """

    async def interrupt(self) -> int:
        """Mark runs that a crash left running as failed with reason `interrupted`."""

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        """The newest runs first, finished ones only, of one job or of all."""

    async def used(self, job_id: int, since: datetime) -> frozenset[datetime]:
        """The job's slots after `since` that have been used."""


class JobStore(JobBook, JobRuns, Protocol):
    """The jobs and their history. A slot is used by at most one run, whatever happens."""


class Triggers(Protocol):
    """What knows when schedules come round."""

    def check(self, schedule: Schedule) -> None:
        """Raise InvalidRequest, with a right example, for a schedule that makes no sense."""

    def after(self, schedule: Schedule, moment: datetime) -> datetime | None:
        """The first slot after the moment; None when there is none."""


class Outbox(Protocol):
    """Where alerts are put, to be delivered to each of their sinks at least once."""

    async def put(self, alert: NewAlert) -> Alert | None:
        """Store an alert with a pending delivery to each of its sinks; None if one with the same digest
        was put within 24 hours and has been acknowledged, or a sink by which this one would be told
        (`told_by`) has taken it or still tries. One that went nowhere keeps no other from being told.
        """

    async def due(self, working: Collection[str] = ()) -> tuple[Delivery, ...]:
        """Deliveries whose time has come, oldest first, and of the sinks that are `working` also those that
        wait for their next try. One that a clock which was ahead has put off is due: it was tried or put later
        than now, or waits for more than two days.
        """

    async def next_due(self) -> datetime | None:
        """When the next delivery is to be tried; None if nothing is pending."""

    async def sent(self, alert_id: int, sink: str) -> None:
        """Record a delivery."""

    async def retry(
        self, alert_id: int, sink: str, until: datetime | None, error: str = ""
    ) -> None:
        """Record a failed try and why it failed; the next one comes at `until`, None gives up."""

    async def hold(self, alert_id: int, sink: str, until: datetime) -> None:
        """Try it no sooner than `until`, or together with what is held for that sink, if that comes
        sooner. It counts as no try.
        """

    async def alerts(self, limit: int, *, unacked: bool = False) -> tuple[Alert, ...]:
        """The newest alerts first."""

    async def ack(self, alert_id: int) -> Alert:
        """Mark an alert as seen. Raises NotFound."""


class AlertSink(Protocol):
    """One way to reach the user."""

    @property
    def name(self) -> str:
        """The word in `[heartbeat] target` and in `delivered`."""

    async def send(self, alert: Alert) -> None:
        """Deliver it. Raises AgentdError when it did not arrive; it is then tried again."""
