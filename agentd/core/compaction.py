"""Values of compaction and of the flush before it: triggers, plans, questions, reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from agentd.core.transcript import AWAY, DISABLED, NO_TROUBLE, Row, SummaryTrouble
from agentd.core.turn import SessionKey, Usage


class Trigger(StrEnum):
    """What caused a compaction or a flush."""

    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"  # /compact
    NEW = "new"  # /new
    FLUSH = "flush"  # /flush, or the soft threshold: the context is not cut
    RESTART = "restart"  # the last shutdown left a flush due
    IDLE = "idle"  # the session has been idle for long

    @property
    def empties(self) -> bool:
        """Whether the context is emptied completely, without a summary."""
        return self in (Trigger.NEW, Trigger.IDLE)


class CompactionPlan(Struct, frozen=True):
    """What compaction is about to do to a session's context.

    `uncovered` are the finished rows that no flush has covered, oldest first: a hook can still save
    them. `old` are the rows that leave the context (empty when only a flush is due); the context
    then begins at row `keep_from`. `summary` stands for the rows before `old`.

    `failures` counts the failed flushes of `uncovered`; `given_up` is how often earlier flushes
    gave these rows up. With `last_try`, what is not saved now is cut unsaved. `ends_taint` means
    that the context begins anew even if no row leaves it. `trouble` describes failed summaries,
    `wish` is what the user wants from the summary.
    """

    session: SessionKey
    trigger: Trigger
    generation: int
    uncovered: tuple[Row, ...]
    old: tuple[Row, ...]
    keep_from: int
    summary: str  # the existing summary of the rows before `old`
    failures: int = 0
    last_try: bool = False
    ends_taint: bool = False
    trouble: SummaryTrouble = NO_TROUBLE
    given_up: int = 0
    wish: str = ""


class Question(Struct, frozen=True):
    """A question of a hook to the model, in a silent turn. `key` identifies the turn: after a crash
    the same key resumes it.
    """

    key: str
    system: str
    text: str
    rows: tuple[Row, ...]
    tools: frozenset[str]
    summary: str = ""


class Answer(Struct, frozen=True):
    """The model's answer to a Question. `writes` counts the successful calls of tools that change
    files, `failed` the failed calls of all tools but those that only read.
    """

    text: str
    writes: int
    usage: Usage
    failed: int = 0


class CompactionReport(Struct, frozen=True):
    """The result of a compaction or flush, in the shape of `agentd sessions compact|flush`.

    `flushed` means that something was saved to memory. `unsaved` counts the messages that could not
    be saved, `unsaved_reason` says why; AWAY means that saving is retried automatically.
    """

    flushed: bool
    compacted: bool
    reason: str
    tokens_before: int
    tokens_after: int
    unsaved: int = 0
    unsaved_reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the shape of `agentd sessions compact|flush`."""
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
        """Return a sentence on what could not be saved to memory and what happens to it; "" if all
        was saved.
        """
        if not self.unsaved or self.unsaved_reason == DISABLED:
            return ""
        who = "One message" if self.unsaved == 1 else f"{self.unsaved:,} messages"
        if self.unsaved_reason == AWAY:
            return (
                f"{who} could not be saved to memory, since the model's service is away: that is "
                "tried again when it is back."
            )
        return (
            f"{who} could not be saved to memory ({self.unsaved_reason}): `agentd sessions flush` "
            "tries it again, `agentd logs` says more."
        )
