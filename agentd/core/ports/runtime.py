"""Ports of time and of health checks."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from agentd.core.health import Problem


class Clock(Protocol):
    """The one source of time in agentd."""

    @property
    def zone(self) -> ZoneInfo:
        """The owner's time zone; decides what `today` means."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""

    def monotonic(self) -> float:
        """Return monotonic seconds; they do not advance while the machine sleeps."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""


class Probe(Protocol):
    """A part's health, for `status` and the watchdog."""

    @property
    def name(self) -> str:
        """The name of the part."""

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong now; empty if nothing is."""

    async def check(self) -> None:
        """Do a little real work; returning proves that the part works. May hang: the caller has a
        deadline.
        """
