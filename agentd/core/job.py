"""Jobs: their schedules, and the runs that record each slot.

A slot is one time at which a job is due. A slot has at most one run. Slots that nothing ran in are
recorded by one run of outcome MISSED, which covers all slots from `due` to `until`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from agentd.core.times import format_duration


class At(Struct, frozen=True):
    """A schedule: once, at an instant."""

    at: datetime


class Every(Struct, frozen=True):
    """A schedule: at the anchor and at every multiple of the interval before and after it, in
    elapsed time.
    """

    every: timedelta
    anchor: datetime


class Cron(Struct, frozen=True):
    """A schedule: whenever the wall time of a zone (an IANA name) matches a cron expression of five
    fields.
    """

    expression: str
    zone: str


Schedule = At | Every | Cron


class JobKind(StrEnum):
    """What a job does in a slot."""

    REMIND = "remind"  # the text itself is the alert
    ASK = "ask"  # the text is put to the model in silence; its reply may be an alert


class JobSession(StrEnum):
    """The context that a question of a job is asked in."""

    MAIN = "main"  # the main conversation
    ISOLATED = "isolated"  # an empty context


class Misfire(StrEnum):
    """What happens to slots that passed while nothing could run."""

    SKIP = "skip"  # a slot runs only if it is hardly late
    ONCE = "once"  # the newest runs, however late
    ALL = "all"  # the newest few run, in order


class JobRequest(Struct, frozen=True):
    """A request for a job in the words of a command or tool call; "" for what was not given."""

    text: str
    at: str = ""
    within: str = ""
    every: str = ""
    cron: str = ""
    zone: str = ""
    kind: str = "remind"
    session: str = "isolated"
    misfire: str = ""
    model: str = ""
    created_by: Literal["owner", "model"] = "owner"


class NewJob(Struct, frozen=True):
    """A job before it is stored. `model` "" means the provider's default model."""

    text: str
    schedule: Schedule
    kind: JobKind = JobKind.REMIND
    session: JobSession = JobSession.ISOLATED
    misfire: Misfire = Misfire.ONCE
    model: str = ""
    created_by: Literal["owner", "model"] = "owner"


class Job(Struct, frozen=True):
    """A stored job. `next_due` is None when no more slots are to come."""

    id: int
    what: NewJob
    created_at: datetime
    next_due: datetime | None
    runs: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return an entry of `agentd jobs list`, without the coming slots."""
        what = self.what
        return {
            "id": self.id,
            "text": what.text,
            "kind": str(what.kind),
            "schedule": schedule_options(what.schedule),
            "session": str(what.session),
            "misfire": str(what.misfire),
            "model": what.model or None,
            "enabled": self.next_due is not None,
            "created_by": what.created_by,
            "created_at": self.created_at.isoformat(),
            "next_due": self.next_due.isoformat() if self.next_due else None,
            "runs": self.runs,
        }


class JobOutcome(StrEnum):
    """The outcome of a run."""

    QUIET = "quiet"
    ALERT = "alert"
    SKIPPED = "skipped"
    FAILED = "failed"
    MISSED = "missed"


class JobReason(StrEnum):
    """The reason for a run's outcome."""

    REMINDER = "reminder"  # the text was sent as an alert
    ALERT = "alert"  # the reply was sent as an alert
    NOTIFY = "notify"  # the model sent an alert itself, with the notify tool
    ACK = "ack"  # the reply said that nothing needs the owner
    DUPLICATE = "duplicate"  # an equal alert was sent within 24 hours
    BUDGET = "budget"
    BREAKER_OPEN = "breaker_open"
    BUSY = "busy"
    EMPTY_REPLY = "empty_reply"
    PROVIDER_ERROR = "provider_error"
    INTERRUPTED = "interrupted"  # a shutdown or a crash cut the run
    LATE = "late"  # the slot passed while nothing could run


class MissedSlots(Struct, frozen=True):
    """Consecutive slots without a run, from the first to the last."""

    first: datetime
    last: datetime


class JobStep(Struct, frozen=True):
    """One advance of a job: the slots it missed, the slot that is used now, and the next due time.
    `due` is None for a run by hand, which leaves the schedule as it is.
    """

    job_id: int
    due: datetime | None
    next_due: datetime | None
    missed: MissedSlots | None = None


class Ending(Struct, frozen=True):
    """The result of a run, before it is stored."""

    outcome: JobOutcome
    reason: JobReason
    text: str = ""  # the alert, the words beside an acknowledgement, or the error
    tokens: int = 0
    cost_usd: float = 0.0


class JobRun(Struct, frozen=True):
    """One row of a job's history."""

    id: int
    job_id: int
    at: datetime  # when it ran
    due: datetime | None  # its slot; None when somebody asked for the run
    until: datetime | None  # the last of several missed slots
    ending: Ending

    def as_json(self) -> dict[str, Any]:
        """Return the shape of `agentd jobs run`, also that of an entry of `agentd jobs history`."""
        end = self.ending
        return {
            "outcome": str(end.outcome),
            "reason": str(end.reason),
            "text": end.text,
            "tokens": end.tokens,
            "cost_usd": end.cost_usd,
            "at": self.at.isoformat(),
            "due": self.due.isoformat() if self.due else None,
            "until": self.until.isoformat() if self.until else None,
            "id": self.id,
            "job": self.job_id,
        }


def schedule_options(schedule: Schedule) -> dict[str, str]:
    """Return a schedule as the options of the command that creates it."""
    match schedule:
        case At(at):
            return {"at": at.isoformat()}
        case Every(every, anchor):
            return {"every": format_duration(every), "anchor": anchor.isoformat()}
        case Cron(expression, zone):
            return {"cron": expression, "zone": zone}
