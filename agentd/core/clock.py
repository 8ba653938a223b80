"""The system clock: the only module that reads the machine's time."""

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
    """The machine's clock. `zone` is an IANA name; empty means the system's zone."""

    def __init__(self, zone: str = "") -> None:
        self._name = zone

    @cached_property
    def zone(self) -> ZoneInfo:
        """The owner's time zone."""
        return ZoneInfo(self._name or system_zone(os.environ))

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return monotonic seconds; they do not advance while the machine sleeps."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""
        await asyncio.sleep(seconds)


def minute(at: datetime, zone: tzinfo) -> str:
    """Format a moment as models see it: "2026-11-21 13:00 CET". Every time that a model reads is in
    the owner's zone.
    """
    try:
        local = at.astimezone(zone)
    except OverflowError:  # an imported time near the minimum or maximum of datetime
        local = at
    return f"{local:%Y-%m-%d %H:%M} {local.tzname()}"


def system_zone(environ: Mapping[str, str], localtime: Path = _LOCALTIME) -> str:
    """Return the IANA name of the system's zone: from TZ, else from the target of /etc/localtime,
    else UTC.

    A value that zoneinfo does not know is ignored (a TZ rule such as `EST5EDT4`, a copied
    /etc/localtime).
    """
    return zone_or_empty(environ, localtime) or "UTC"


def zone_or_empty(environ: Mapping[str, str], localtime: Path = _LOCALTIME) -> str:
    """Return the same as `system_zone`, but "" where the machine names no zone."""
    for name in (environ.get("TZ", "").removeprefix(":"), str(localtime.resolve())):
        candidate = name.rpartition("/zoneinfo/")[2]
        try:
            if candidate and not candidate.startswith("/"):
                return ZoneInfo(candidate).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return ""
