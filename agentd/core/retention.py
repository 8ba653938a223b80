"""Values of retention: what has been kept for long enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agentd.core.turn import SessionKey


@dataclass(frozen=True, slots=True)
class Aged:
    """What is older than some moment and has left its session's context.

    `rows` may be erased, all of them in `sessions`; so may the records of `silent` turns, which hold
    what a beat or a flush answered. `kept` counts rows that stay because nothing was saved of them,
    by the reason that their flush left behind.
    """

    sessions: tuple[SessionKey, ...] = ()
    rows: int = 0
    silent: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retained:
    """How long rows are kept (0 `days`: for ever), when that was last looked at, how many were erased
    then, and how many old ones stayed, by the reason.
    """

    days: int
    last: datetime | None = None
    removed: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The shape in `agentd status`."""
        return {
            "days": self.days,
            "last": self.last.isoformat() if self.last else None,
            "removed": self.removed,
            "kept": dict(self.kept),
        }
