"""Values of retention: rows old enough to be deleted, and the result of the last run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from agentd.core.turn import SessionKey


class AgedRows(Struct, frozen=True):
    """The rows that are older than a given moment and have left their session's context.

    `rows` counts those that may be erased, all of them in `sessions`; `silent` counts the erasable
    records of silent turns (answers of beats and flushes). `kept` counts rows that stay because
    they were not saved to memory, by the reason their flush recorded.
    """

    sessions: tuple[SessionKey, ...] = ()
    rows: int = 0
    silent: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)


class Retained(Struct, frozen=True):
    """The state of retention: how many `days` rows are kept (0: for ever), when it last ran, how
    many rows it erased then, and how many old ones stayed, by reason.
    """

    days: int
    last: datetime | None = None
    removed: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the entry in `agentd status`."""
        return {
            "days": self.days,
            "last": self.last.isoformat() if self.last else None,
            "removed": self.removed,
            "kept": dict(self.kept),
        }
