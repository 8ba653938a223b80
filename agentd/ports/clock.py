"""Time, for all of agentd."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo


class Clock(Protocol):
    """The one source of time."""

    @property
    def zone(self) -> ZoneInfo:
        """The owner's time zone: what `today` means."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; they stand still while the machine sleeps."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""
