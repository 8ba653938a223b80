"""What model calls have used, and limits on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentd.domain.turn import Origin, SessionKey, Usage


@dataclass(frozen=True, slots=True)
class Cap:
    """No more than `usd` dollars and `tokens` tokens since `since`, by turns of `origin` or by all.

    None is no limit. `name` is the configuration key that sets it.
    """

    name: str
    since: datetime
    usd: float | None = None
    tokens: int | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """One model call in the ledger; `session` is empty while it is only set aside for, and where it
    was for no session alone.
    """

    at: datetime
    session: SessionKey
    origin: Origin
    model: str
    usage: Usage
    cost_usd: float

    def as_json(self) -> dict[str, Any]:
        """A row of the export."""
        return {
            "at": self.at.isoformat(),
            "session": str(self.session),
            "origin": str(self.origin),
            "model": self.model,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cache_read_tokens": self.usage.cache_read_tokens,
            "cache_write_tokens": self.usage.cache_write_tokens,
            "cost_usd": self.cost_usd,
        }
