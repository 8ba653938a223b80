"""Parses and formats times: durations, times of day, zones, instants, HTTP dates, and dates in
names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_DURATION = re.compile(r"(?:(\d+)d\s*+)?(?:(\d+)h\s*+)?(?:(\d+)m\s*+)?(?:(\d+)s)?", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)


def parse_duration(value: Any) -> timedelta:
    """Parse a duration such as "1h30m", "45s", "2d". Raises ValueError with an example."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not any(match.groups()):
        msg = f'{value!r} is no duration; write it like "30m", "1h30m", "45s" or "2d"'
        raise ValueError(msg)
    days, hours, minutes, seconds = (int(g or 0) for g in match.groups())
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        msg = f"{value!r} is too long a duration"
        raise ValueError(msg) from None


def format_duration(value: timedelta) -> str:
    """Return the shortest spelling of a duration that `parse_duration` reads."""
    left = int(value.total_seconds())
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_time(value: Any) -> int:
    """Return the minutes since midnight of "HH:MM". Raises ValueError with an example."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1440:
        return value
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        msg = (
            f'{value!r} is no time of day; write it like "08:00" or "22:30" '
            '("24:00" only as an end)'
        )
        raise ValueError(msg)
    return int(value[:2]) * 60 + int(value[3:])


def format_time(minutes: int) -> str:
    """Return minutes since midnight as `HH:MM`."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def parse_zone(value: Any) -> str:
    """Check that a zone name is a known IANA name, and return it. Raises ValueError with an
    example.
    """
    if value == "":
        return ""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        msg = f'{value!r} is no known time zone; write it like "Europe/Berlin" or "UTC"'
        raise ValueError(msg) from None
    return str(value)


FIRST_YEAR, LAST_YEAR = 1_000, 9_000  # so that no zone, pause or end of a year leaves the calendar


def read_instant(text: Any, zone: tzinfo = UTC) -> datetime:
    """Parse ISO 8601 text into an aware datetime in UTC; text without an offset is in `zone`.

    Raises ValueError, naming the text, if it is no time or its year is outside
    FIRST_YEAR…LAST_YEAR.
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


_IN_2001, _IN_5138 = 1e9, 1e11  # seconds since 1970; as milliseconds, the latter is in 1973
_LONGEST_RETRY = 365 * 86_400.0  # seconds; no service can mean a longer wait


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a response asks to wait, at most a year; None if it says nothing that
    can be read. `Retry-After` says it in seconds or as a date, `retry-after-ms` in milliseconds,
    and `x-ratelimit-reset` beside `x-ratelimit-remaining: 0` as seconds or milliseconds since 1970.

    `headers` are looked up by lower-case names. A moment is compared with the response's own
    `Date`, so that the clocks need not agree; if there is none, with `now` if given.
    """
    text = headers.get("retry-after", "")
    if (millis := _number(headers.get("retry-after-ms", ""))) is not None:
        return _within_retry(millis / 1000)
    if (seconds := _number(text)) is not None:
        return _within_retry(seconds)
    at, sent = _http_date(text), _http_date(headers.get("date", "")) or now
    if at is None and headers.get("x-ratelimit-remaining") == "0":
        at = _since_1970(headers.get("x-ratelimit-reset", ""))
    return None if at is None or sent is None else _within_retry((at - sent).total_seconds())


def _within_retry(seconds: float) -> float:
    return min(max(seconds, 0.0), _LONGEST_RETRY)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _since_1970(text: str) -> datetime | None:
    """Return the moment of a count of seconds or milliseconds; None for a smaller number, which
    services mean in several ways, and for what is no number.
    """
    number = _number(text)
    if number is None or not _IN_2001 < number < 1000 * _IN_5138:
        return None
    return datetime.fromtimestamp(number if number < _IN_5138 else number / 1000, UTC)


def _http_date(text: str) -> datetime | None:
    """Parse an HTTP date, in UTC if it names no zone; None if it is no date."""
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def within_calendar(at: datetime) -> datetime:
    """Return an aware moment, or the nearest one that can be represented in every zone."""
    year = min(max(at.year, FIRST_YEAR), LAST_YEAR)
    return at if year == at.year else at.replace(year=year, month=1, day=1)


_DAY = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII)
_CLOCK = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}(?::\d{2})?|"
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:[ap]m|utc)\b",
    re.ASCII | re.IGNORECASE,
)
_WORD = re.compile(r"\w")


def date_in(text: str) -> date | None:
    """Return the last valid date, as YYYY-MM-DD, that a path or heading contains; None if there is
    none.
    """
    for year, month, day in reversed(_DAY.findall(text)):
        try:
            return date(int(year), int(month), int(day))
        except ValueError:
            continue
    return None


def without_dates(title: str) -> str:
    """Return the heading, or "" if it consists only of a date and time: chunks carry their date
    separately.
    """
    return title if _WORD.search(_CLOCK.sub("", title)) else ""
