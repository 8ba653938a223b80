"""How much a fact counts, by its source and age. Pure, and loads no library."""

from __future__ import annotations

from datetime import datetime

from agentd.core.fact import Fact, FactSource

DAILY = 0.95  # factor of each day of age
OLDEST = 0.1  # lowest factor of age
_BY_SOURCE = {FactSource.EXPLICIT: 1.0, FactSource.FILE: 0.8, FactSource.EXTRACTED: 0.6}


def importance(fact: Fact, now: datetime) -> float:
    """Return the importance, 0..1: that of the source times that of the age. Facts written in the
    file do not age.
    """
    days = max(0.0, (now - fact.noted_at).total_seconds() / 86_400)
    fresh = 1.0 if fact.source is FactSource.FILE else max(DAILY**days, OLDEST)
    return _BY_SOURCE[fact.source] * fresh


def worth(fact: Fact, now: datetime) -> float:
    """Return confidence times importance, 0..1."""
    return min(1.0, max(0.0, fact.confidence)) * importance(fact, now)
