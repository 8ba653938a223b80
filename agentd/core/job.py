"""Jobs: what is to happen when, and what became of it.

A slot is one time at which a job is due. A slot has at most one run, and one that had none is named
by a run of outcome MISSED, which stands for all slots from `due` to `until`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from agentd.core.times import format_duration


@dataclass(frozen=True, slots=True)
class At:
    """Once, at an instant."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Every:
    """At the anchor and every so often before and after it, in elapsed time."""

    every: timedelta
    anchor: datetime


@dataclass(frozen=True, slots=True)
class Cron:
    """When the clocks of a zone (an IANA name) fit an expression of five fields."""

    expression: str
    zone: str


Schedule = At | Every | Cron


class JobKind(StrEnum):
    """What happens in a slot."""

    REMIND = "remind"  # the text itself is the alert
    ASK = "ask"  # the text is put to the model in silence; its reply may be an alert


class JobSession(StrEnum):
    """What a question sees."""

    MAIN = "main"  # the main conversation
    ISOLATED = "isolated"  # nothing but itself


class Misfire(StrEnum):
    """What becomes of slots that went by while nothing could run."""

    SKIP = "skip"  # only what is hardly late runs
    ONCE = "once"  # the newest runs, however late
    ALL = "all"  # the newest few run, in order


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job before it is stored. `model` is "" for the provider's own."""

    text: str
    schedule: Schedule
    kind: JobKind = JobKind.REMIND
    session: JobSession = JobSession.ISOLATED
    misfire: Misfire = Misfire.ONCE
    model: str = ""
    created_by: Literal["owner", "model"] = "owner"


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job. `next_due` is None when no slot is to come."""

    id: int
    what: NewJob
    created_at: datetime
    next_due: datetime | None
    runs: int = 0

    def as_json(self) -> dict[str, Any]:
        """What `agentd jobs list` says of it, without the times to come."""
        what = self.what
        return {
            "id": self.id,
            "text": what.text,
            "kind": str(what.kind),
            "schedule": spelled(what.schedule),
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
    """What a run came to."""

    QUIET = "quiet"
    ALERT = "alert"
    SKIPPED = "skipped"
    FAILED = "failed"
    MISSED = "missed"


class JobReason(StrEnum):
    """Why."""

    REMINDER = "reminder"  # the text was told
    ALERT = "alert"  # the reply was told
    NOTIFY = "notify"  # the model told it itself
    ACK = "ack"  # the reply said that nothing needs the owner
    DUPLICATE = "duplicate"  # the reply was told within 24 hours
    BUDGET = "budget"
    BREAKER_OPEN = "breaker_open"
    BUSY = "busy"
    EMPTY_REPLY = "empty_reply"
    PROVIDER_ERROR = "provider_error"
    INTERRUPTED = "interrupted"  # a stop or a crash cut it
    LATE = "late"  # gone by while nothing could run


@dataclass(frozen=True, slots=True)
class Missed:
    """Slots without a run, from the first to the last."""

    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """How a job goes on: what it missed, the slot that is used now, and when it is due next.

    `due` is None for a run by hand, which leaves the schedule alone.
    """

    job_id: int
    due: datetime | None
    next_due: datetime | None
    missed: Missed | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run came to, before it is stored."""

    outcome: JobOutcome
    reason: JobReason
    text: str = ""  # what was told, what stood beside an acknowledgement, or what failed
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class JobRun:
    """One row of a job's history."""

    id: int
    job_id: int
    at: datetime  # when it ran
    due: datetime | None  # its slot; None when somebody asked for it
    until: datetime | None  # the last of several missed slots
    ending: Ending

    def as_json(self) -> dict[str, Any]:
        """The shape of `agentd jobs run|history`."""
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


def spelled(schedule: Schedule) -> dict[str, str]:
    """A schedule in the words of the command that makes it."""
    match schedule:
        case At(at):
            return {"at": at.isoformat()}
        case Every(every, anchor):
            return {"every": format_duration(every), "anchor": anchor.isoformat()}
        case Cron(expression, zone):
            return {"cron": expression, "zone": zone}
