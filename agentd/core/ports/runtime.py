"""Time, and whether a part is well."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from agentd.core.health import Problem


class Clock(Protocol):
    """The one source of time, for all of agentd."""

    @property
    def zone(self) -> ZoneInfo:
        """The owner's time zone: what `today` means."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; they stand still while the machine sleeps."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""


class Probe(Protocol):
    """A part's health, for `status` and the watchdog."""

    @property
    def name(self) -> str:
        """The part."""

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong now; none is fine."""

    async def prove(self) -> None:
        """Do a little real work; returning is the proof. May hang: the caller has a deadline."""
