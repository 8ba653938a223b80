"""Text that is not what it looks like, or that speaks to the agent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a piece of text deserves."""

    HIGH = "high"  # nobody sees what it holds: the user is asked
    LOW = "low"  # seen in attacks and in honest notes: a warning, no more


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One suspicious place. `line` and `column` count from 1; `key` is what makes two of them the
    same finding, wherever in the file their line stands.
    """

    severity: Severity
    reason: str
    line: int
    column: int
    key: str = ""

    @property
    def is_high(self) -> bool:
        """Whether the user has to be asked."""
        return self.severity is Severity.HIGH

    def __str__(self) -> str:
        return f"{self.line}:{self.column} {self.reason} ({self.severity})"

    def as_json(self) -> dict[str, str | int]:
        """The shape in answers."""
        return {
            "severity": str(self.severity),
            "reason": self.reason,
            "line": self.line,
            "column": self.column,
        }
