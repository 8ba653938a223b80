"""Values of compaction and of the flush before it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentd.core.transcript import AWAY, DISABLED, NO_TROUBLE, Row, SummaryTrouble
from agentd.core.turn import SessionKey, Usage


class Trigger(StrEnum):
    """What asked for room."""

    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"  # /compact
    NEW = "new"  # /new
    FLUSH = "flush"  # /flush, or the soft threshold: nothing is cut
    RESTART = "restart"  # a stop left a flush due
    IDLE = "idle"  # nobody has said anything for long

    @property
    def empties(self) -> bool:
        """Whether nothing of the context is to stay, not even as a summary."""
        return self in (Trigger.NEW, Trigger.IDLE)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What is about to happen to a session's context.

    `uncovered` are the finished rows that no flush has covered, oldest first: what a hook may still
    save. `old` are those that leave the context (empty when only a flush is due); the context then
    begins at row `keep_from`. `last_try` says that what is not saved now is cut unsaved, `ends_taint`
    that the context is to begin anew even where no row leaves it. `failures` counts those of the flush,
    `given_up` how often saving these very rows was given up before, `trouble` those of the summary; `wish`
    is what the user wants of that.
    """

    session: SessionKey
    trigger: Trigger
    generation: int
    uncovered: tuple[Row, ...]
    old: tuple[Row, ...]
    keep_from: int
    summary: str  # what already stands for rows before `old`
    failures: int = 0
    last_try: bool = False
    ends_taint: bool = False
    trouble: SummaryTrouble = NO_TROUBLE
    given_up: int = 0
    wish: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What a hook asks the model in silence. `key` names the turn: after a crash the same key resumes it."""

    key: str
    system: str
    text: str
    rows: tuple[Row, ...]
    tools: frozenset[str]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `writes` counts the successful calls of tools that change files."""

    text: str
    writes: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What was done to a session's context: the shape of `agentd sessions compact|flush`. `flushed` says
    that something was saved to memory; `unsaved` counts the messages that could not be, and
    `unsaved_reason` is why, AWAY if they are offered again by themselves.
    """

    flushed: bool
    compacted: bool
    reason: str
    tokens_before: int
    tokens_after: int
    unsaved: int = 0
    unsaved_reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """The JSON shape."""
        return {
            "flushed": self.flushed,
            "compacted": self.compacted,
            "reason": self.reason,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "unsaved": self.unsaved,
            "unsaved_reason": self.unsaved_reason,
        }

    def unsaved_in_words(self) -> str:
        """What could not be saved to memory, and what becomes of it; "" if nothing is."""
        if not self.unsaved or self.unsaved_reason == DISABLED:
            return ""
        who = "One message" if self.unsaved == 1 else f"{self.unsaved:,} messages"
        if self.unsaved_reason == AWAY:
            return (
                f"{who} could not be saved to memory, since the model's service is away: that is tried"
                " again when it is back."
            )
        return (
            f"{who} could not be saved to memory ({self.unsaved_reason}): `agentd sessions flush` tries"
            " it again, `agentd logs` says more."
        )
