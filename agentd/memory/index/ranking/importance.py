"""How much a fact counts by who said it and how long ago. Pure, and loads no library."""

from __future__ import annotations

from datetime import datetime

from agentd.core.fact import Fact, FactSource

DAILY = 0.95  # a day's share of what age leaves
OLDEST = 0.1  # what age leaves at least
_BY_SOURCE = {FactSource.EXPLICIT: 1.0, FactSource.FILE: 0.8, FactSource.EXTRACTED: 0.6}


def importance(fact: Fact, now: datetime) -> float:
    """0..1: what its source is worth, times age; what stands in the file does not age."""
    days = max(0.0, (now - fact.noted_at).total_seconds() / 86_400)
    fresh = 1.0 if fact.source is FactSource.FILE else max(DAILY**days, OLDEST)
    return _BY_SOURCE[fact.source] * fresh


def worth(fact: Fact, now: datetime) -> float:
    """0..1: confidence times importance."""
    return min(1.0, max(0.0, fact.confidence)) * importance(fact, now)
