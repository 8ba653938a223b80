"""Times that are given from outside: in files, imports and commands."""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime, tzinfo
from typing import Any

FIRST_YEAR, LAST_YEAR = 1_000, 9_000  # so that no zone, pause or end of a year leaves the calendar


def read_instant(text: Any, zone: tzinfo = UTC) -> datetime:
    """The moment that ISO 8601 text names, aware, in UTC; one without an offset is meant in `zone`.

    Raises ValueError, which names the text, for what is no time and for years that cannot be meant.
    """
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        msg = f"{text!r} is no time"
        raise ValueError(msg) from None
    if MINYEAR < found.year < MAXYEAR:
        at = (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
        if FIRST_YEAR <= at.year <= LAST_YEAR:
            return at
    msg = f"{text!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}"
    raise ValueError(msg)


def within_calendar(at: datetime) -> datetime:
    """An aware moment as it is, or the nearest that every zone has a time for."""
    year = min(max(at.year, FIRST_YEAR), LAST_YEAR)
    return at if year == at.year else at.replace(year=year, month=1, day=1)
