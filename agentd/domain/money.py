"""Limits on what model calls may use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentd.domain.turn import Origin


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
