"""The system's time: the only place that reads it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LOCALTIME = Path("/etc/localtime")


class SystemClock:
    """The machine's clock, seen from `zone` (an IANA name; empty means the system's)."""

    def __init__(self, zone: str = "") -> None:
        self._name = zone

    @cached_property
    def zone(self) -> ZoneInfo:
        """The owner's time zone."""
        return ZoneInfo(self._name or system_zone(os.environ))

    def now(self) -> datetime:
        """Wall time, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back; they stand still while the machine sleeps."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""
        await asyncio.sleep(seconds)


def minute(at: datetime, zone: tzinfo) -> str:
    """A moment as models are told it: "2026-11-21 13:00 CET". All that a model reads is in one zone, the
    owner's.
    """
    try:
        local = at.astimezone(zone)
    except OverflowError:  # an imported moment at the edge of the calendar
        local = at
    return f"{local:%Y-%m-%d %H:%M} {local.tzname()}"


def system_zone(environ: Mapping[str, str], localtime: Path = _LOCALTIME) -> str:
    """The IANA name of the system's zone: TZ, else where /etc/localtime points, else UTC.

    What names no zone that zoneinfo knows is passed over (a TZ rule such as `EST5EDT4`, a copied
    /etc/localtime).
    """
    return known_zone(environ, localtime) or "UTC"


def known_zone(environ: Mapping[str, str], localtime: Path = _LOCALTIME) -> str:
    """`system_zone`, or "" where the machine names none."""
    for name in (environ.get("TZ", "").removeprefix(":"), str(localtime.resolve())):
        candidate = name.rpartition("/zoneinfo/")[2]
        try:
            if candidate and not candidate.startswith("/"):
                return ZoneInfo(candidate).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return ""
