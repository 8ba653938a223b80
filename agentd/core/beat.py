"""Heartbeats: what a tick came to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What a beat came to."""

    QUIET = "quiet"
    ALERT = "alert"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """Why."""

    DISABLED = "disabled"
    PAUSED = "paused"
    OUTSIDE_ACTIVE_HOURS = "outside_active_hours"
    QUIET_HOURS = "quiet_hours"
    BUSY = "busy"
    EMPTY_CHECKLIST = "empty_checklist"
    NOTHING_DUE = "nothing_due"
    BUDGET = "budget"
    BREAKER_OPEN = "breaker_open"
    ACK = "ack"
    DUPLICATE = "duplicate"
    NOTIFY = "notify"
    ALERT = "alert"
    EMPTY_REPLY = "empty_reply"
    PROVIDER_ERROR = "provider_error"
    INTERRUPTED = "interrupted"
    UNCHANGED = "unchanged"  # all that is watched is as it was; no model was asked
    LOOK_FAILED = "look_failed"  # a tool that an entry watches could not be asked


@dataclass(frozen=True, slots=True)
class Beat:
    """One row of the heartbeat's history."""

    id: int
    at: datetime  # when it ran
    due: datetime | None  # the slot it stands for; None when somebody asked for it
    outcome: Outcome
    reason: Reason
    text: str = ""  # the alert's text, what was left over of an acknowledged reply, or what failed
    tokens: int = 0
    cost_usd: float = 0.0
    file_hash: str = ""  # SHA-256 of HEARTBEAT.md as the beat saw it

    def as_json(self) -> dict[str, Any]:
        """The shape of `agentd heartbeat run|history`."""
        return {
            "outcome": str(self.outcome),
            "reason": str(self.reason),
            "text": self.text,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "at": self.at.isoformat(),
            "due": self.due.isoformat() if self.due else None,
            "file_hash": self.file_hash,
            "id": self.id,
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """How the heartbeat stands. `next_due` is None while it is off."""

    is_on: bool
    next_due: datetime | None
    paused_until: datetime | None = None
    last: Beat | None = None
    tokens_today: int = 0
    daily_tokens: int = 0  # as many as beats may use; 0 is no limit

    def as_json(self) -> dict[str, Any]:
        """The shape in `agentd status`."""
        return {
            "enabled": self.is_on,
            "next_due": self.next_due.isoformat() if self.next_due else None,
            "paused_until": self.paused_until.isoformat() if self.paused_until else None,
            "last": self.last.as_json() if self.last else None,
            "tokens_today": self.tokens_today,
            "daily_tokens": self.daily_tokens,
        }


@dataclass(frozen=True, slots=True)
class HeartbeatState:
    """What a restart must not forget."""

    next_due: datetime | None = None
    paused_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ItemState:
    """When a dated checklist item was last done, by the hash of its text."""

    item: str
    first_seen: datetime
    last_done: datetime | None = None
