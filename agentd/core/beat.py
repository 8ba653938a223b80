"""Heartbeats: the outcome of a beat, and the findings of its parts, of which the beat's row shows
the main one. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.alert import NewAlert, as_told
from agentd.core.verdict import Alarm, Empty, Failed, Quiet, Told, Verdict
from agentd.core.watch import WatchedEntry

MOST_ENTRIES = 100  # due entries that a beat remembers


class Outcome(StrEnum):
    """The outcome of a beat."""

    QUIET = "quiet"
    ALERT = "alert"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """The reason for a beat's outcome."""

    DISABLED = "disabled"
    PAUSED = "paused"  # by the owner
    IDLE = "idle"  # the owner has been silent for longer than beats go on
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
    UNCHANGED = "unchanged"  # nothing watched has changed; no model was asked
    LOOK_FAILED = "look_failed"  # a tool that a watched entry depends on could not be called


class Beat(Struct, frozen=True):
    """One row of the heartbeat's history."""

    id: int
    at: datetime  # when it ran
    due: datetime | None  # its slot; None when somebody asked for the beat
    outcome: Outcome
    reason: Reason
    text: str = ""  # the alert, the words beside an acknowledgement, or the error
    tokens: int = 0
    cost_usd: float = 0.0
    file_hash: str = ""  # SHA-256 of HEARTBEAT.md as the beat saw it
    forced: bool = False  # asked for with gates ignored
    entries: tuple[str, ...] = ()  # hashes of dated entries that were due, MOST_ENTRIES at most
    repeats: int | None = None  # the id of the alert that this one's would have repeated
    repeats_at: datetime | None = None  # when that was put

    @property
    def trigger(self) -> str:
        """What made it run: "schedule", "hand", or "force" if gates were ignored."""
        return "schedule" if self.due else "force" if self.forced else "hand"

    def as_json(self) -> dict[str, Any]:
        """Return the shape of `agentd heartbeat run`, also that of an entry of `agentd heartbeat
        history`.
        """
        return {
            "outcome": str(self.outcome),
            "reason": str(self.reason),
            "text": self.text,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
            "at": self.at.isoformat(),
            "due": self.due.isoformat() if self.due else None,
            "file_hash": self.file_hash,
            "trigger": self.trigger,
            "entries": list(self.entries),
            "repeats": self.repeats,
            "repeats_at": self.repeats_at.isoformat() if self.repeats_at else None,
            "id": self.id,
        }


class HeartbeatStatus(Struct, frozen=True):
    """The state of the heartbeat. `next_due` is None while it is off."""

    is_on: bool
    next_due: datetime | None
    paused_until: datetime | None = None
    last: Beat | None = None
    tokens_today: int = 0
    daily_tokens: int = 0  # how many beats may use in a day; 0 is no limit

    def as_json(self) -> dict[str, Any]:
        """Return the heartbeat's entry in `agentd status`."""
        return {
            "enabled": self.is_on,
            "next_due": self.next_due.isoformat() if self.next_due else None,
            "paused_until": self.paused_until.isoformat() if self.paused_until else None,
            "last": self.last.as_json() if self.last else None,
            "tokens_today": self.tokens_today,
            "daily_tokens": self.daily_tokens,
        }


class HeartbeatState(Struct, frozen=True):
    """The part of the heartbeat's state that survives a restart. `paused_at` is when the pause was
    asked for.
    """

    next_due: datetime | None = None
    paused_until: datetime | None = None
    paused_at: datetime | None = None

    def pause_ends(self, now: datetime) -> datetime | None:
        """Return until when the heartbeat is paused. A pause that was asked for later than now, by
        a clock that was ahead, lasts its length from now on, not for as long as the clock was
        ahead.
        """
        if self.paused_until is None or self.paused_at is None or self.paused_at <= now:
            return self.paused_until
        return now + (self.paused_until - self.paused_at)


class ItemState(Struct, frozen=True):
    """When a dated checklist item was last done, by the hash of its text."""

    item: str
    first_seen: datetime
    last_done: datetime | None = None


class BeatFinding(Struct, frozen=True):
    """The result of one part of a beat; all parts are stored at its end. `done_items` are the
    hashes of the dated entries that were checked successfully, `repeats` the id of the alert that
    this one would have repeated.
    """

    outcome: Outcome
    reason: Reason
    text: str = ""
    done_items: tuple[str, ...] = ()
    alert: NewAlert | None = None
    watch: WatchedEntry | None = None
    repeats: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether the beat must not ask a model again after this part: the part was interrupted, or
        the budget is used up. After any other failure of a part the beat goes on with the next.
        """
        return self.reason in (Reason.INTERRUPTED, Reason.BUDGET)

    def untold(self, repeats: int | None) -> BeatFinding:
        """Return this finding as a quiet duplicate: its alert was not put because the user was told
        an equal one, with the id `repeats`, within 24 hours.
        """
        return replace(
            self, outcome=Outcome.QUIET, reason=Reason.DUPLICATE, alert=None, repeats=repeats
        )


def finding_of(
    verdict: Verdict, done_items: tuple[str, ...] = (), alert: NewAlert | None = None
) -> BeatFinding:
    """Return the finding that a verdict stands for; `alert` is the alert that an Alarm sends."""
    match verdict:
        case Failed():
            return BeatFinding(Outcome.FAILED, _reason(verdict), verdict.text)
        case Empty():
            return BeatFinding(Outcome.FAILED, Reason.EMPTY_REPLY)
        case Quiet():
            outcome, reason, alert = Outcome.QUIET, Reason.ACK, None
        case Told(is_repetition=True):
            outcome, reason, alert = Outcome.QUIET, Reason.DUPLICATE, None
        case Told():
            outcome, reason, alert = Outcome.ALERT, Reason.NOTIFY, None
        case Alarm():
            outcome, reason = Outcome.ALERT, Reason.ALERT
        case _:
            assert_never(verdict)
    text = as_told(verdict.text, tainted=verdict.tainted)
    return BeatFinding(outcome, reason, text, done_items, alert)


def _reason(failed: Failed) -> Reason:
    if failed.is_over_budget:
        return Reason.BUDGET
    return Reason.INTERRUPTED if failed.is_cut else Reason.PROVIDER_ERROR


_OUTCOMES = (Outcome.ALERT, Outcome.FAILED, Outcome.QUIET)
_QUIET_REASONS = (Reason.DUPLICATE, Reason.ACK, Reason.UNCHANGED)


def main_finding(findings: Sequence[BeatFinding]) -> BeatFinding:
    """Return the finding that the beat's row shows, of at least one: alerts come before failures,
    failures before quiet ones. Of the quiet ones a duplicate comes before an acknowledgement, and
    that before `unchanged`.
    """
    return min(findings, key=_rank)


def text_of(findings: Sequence[BeatFinding]) -> str:
    """Return the text of the beat's row: the texts of all findings."""
    return "\n\n".join(found.text for found in findings if found.text)


def _rank(finding: BeatFinding) -> tuple[int, int]:
    is_quiet = finding.reason in _QUIET_REASONS
    of_reason = _QUIET_REASONS.index(finding.reason) if is_quiet else 0
    return _OUTCOMES.index(finding.outcome), of_reason
