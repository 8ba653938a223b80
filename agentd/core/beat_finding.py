"""What the parts of a beat come to, and which of them its row names. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from agentd.core.alert import NewAlert, as_told
from agentd.core.beat import Outcome, Reason
from agentd.core.verdict import Alarm, Empty, Failed, Quiet, Told, Verdict
from agentd.core.watch import WatchedEntry


@dataclass(frozen=True, slots=True)
class BeatFinding:
    """What a part of a beat came to; all are stored at its end. `done_items` are the hashes of dated
    entries that were looked at with success.
    """

    outcome: Outcome
    reason: Reason
    text: str = ""
    done_items: tuple[str, ...] = ()
    alert: NewAlert | None = None
    watch: WatchedEntry | None = None

    @property
    def is_last(self) -> bool:
        """Whether no model is to be asked after it. What a model did with one entry says nothing of that."""
        return self.reason in (Reason.INTERRUPTED, Reason.BUDGET)

    def untold(self) -> BeatFinding:
        """The same where its alert was not put, since the user was told it within 24 hours."""
        return replace(self, outcome=Outcome.QUIET, reason=Reason.DUPLICATE, alert=None)


def finding_of(
    verdict: Verdict, done_items: tuple[str, ...] = (), alert: NewAlert | None = None
) -> BeatFinding:
    """What a verdict means; `alert` is the one that an alarm is told by."""
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
    """The one that the beat's row names, of at least one: what the user was told before what failed, and
    that before what was quiet; of the quiet ones, where most was found.
    """
    return min(findings, key=_rank)


def text_of(findings: Sequence[BeatFinding]) -> str:
    """What the beat's row says: the words of all of them."""
    return "\n\n".join(found.text for found in findings if found.text)


def _rank(finding: BeatFinding) -> tuple[int, int]:
    is_quiet = finding.reason in _QUIET_REASONS
    of_reason = _QUIET_REASONS.index(finding.reason) if is_quiet else 0
    return _OUTCOMES.index(finding.outcome), of_reason
