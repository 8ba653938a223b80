"""Times in what people type, as the marks of a checklist entry. Pure.

call Ana tomorrow at 9       call Ana        (due: 2026-11-22 09:00)
water the plants every 2h    water the plants  (every: 2h)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

_CHARS = 1_000  # that are looked at
_MORNING = time(9)
_EVENING = time(20)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNIT = r"(?P<unit>m|min|mins|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\b"
_EVERY = re.compile(
    rf"\b(?:every|each) (?:(?P<n>\d{{1,4}}) ?)?{_UNIT}|\b(?P<word>hourly|daily|weekly)\b",
    re.IGNORECASE,
)
_IN = re.compile(rf"\bin (?P<n>\d{{1,4}}|an?|half an) ?{_UNIT}", re.IGNORECASE)
_ISO = re.compile(
    r"(?:\bon )?\b(?P<day>\d{4}-\d{2}-\d{2})(?:[T ](?P<time>\d{1,2}:\d{2}))?\b", re.IGNORECASE
)
_DAY = re.compile(
    r"\b(?:(?:on|this|next) )?(?P<day>the day after tomorrow|day after tomorrow|tomorrow|today|tonight|"
    + "|".join(_WEEKDAYS)
    + r")\b",
    re.IGNORECASE,
)
_MONTH = "(?P<{}>" + "|".join(_MONTHS) + r")[a-z]{{0,6}}\.?"
_DATE = re.compile(
    rf"\b(?:on )?(?:the )?(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH.format('m1')}"
    rf"|{_MONTH.format('m2')} (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?)(?:,? (?P<y>\d{{4}}))?\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:at |by )?(?P<h>\d{1,2}):(?P<m>\d{2}) ?(?P<ap>[ap]m)?\b"
    r"|\b(?:at |by )?(?P<h2>\d{1,2}) ?(?P<ap2>[ap]m)\b|\bat (?P<h3>\d{1,2})(?: o['’]clock)?\b"
    r"|\bat (?P<noon>noon|midday)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Timed:
    """A task and when it is due; `marks` is "" when no time was found. `at` is the due time of a task
    that is due once, "" for any other.
    """

    task: str
    marks: str = ""
    at: str = ""

    @property
    def entry(self) -> str:
        """The line for HEARTBEAT.md."""
        return f"- [ ] {self.task} {self.marks}".rstrip()


def timed(text: str, now: datetime | None) -> Timed:
    """The task without its time, and the time; relative times need `now`, the owner's wall time."""
    flat = " ".join(text[:_CHARS].split())
    every = _EVERY.search(flat)
    due, rest = _due(_without(flat, every), now)
    at = f"{due:%Y-%m-%d %H:%M}" if due is not None else ""
    marks = [f"(due: {at})"] if at else []
    if every is not None:
        marks.append(f"(every: {_interval(every)})")
    if not marks:
        return Timed(_tidy(text))
    return Timed(_tidy(rest) or _tidy(flat), " ".join(marks), "" if every is not None else at)


def _due(text: str, now: datetime | None) -> tuple[datetime | None, str]:
    """When, and the text without the words that say so."""
    if (soon := _IN.search(text)) and now is not None:
        return now + _span(soon), _without(text, soon)
    for pattern, read in ((_ISO, _iso), (_DATE, _month_day), (_DAY, _day)):
        if (match := pattern.search(text)) and (day := read(match, now)):
            rest = _without(text, match)
            fixed = _TIME.search(match["time"] or "") if pattern is _ISO else None
            clock = fixed or _TIME.search(rest)
            default = _EVENING if match[0].casefold().endswith("tonight") else _MORNING
            at = datetime.combine(day, _clock(clock) or default)
            return at, rest if fixed else _without(rest, clock)
    clock = _TIME.search(text)
    at_time = _clock(clock)
    if at_time is None or now is None:
        return None, text
    due = datetime.combine(now.date(), at_time)
    return due if due > now else due + timedelta(days=1), _without(text, clock)


def _iso(match: re.Match[str], _now: datetime | None) -> date | None:
    try:
        return date.fromisoformat(match["day"])
    except ValueError:
        return None


def _month_day(match: re.Match[str], now: datetime | None) -> date | None:
    if now is None and not match["y"]:
        return None
    month = _MONTHS.index((match["m1"] or match["m2"]).casefold()) + 1
    try:
        day = date(
            int(match["y"] or (now.year if now else 1)), month, int(match["d1"] or match["d2"])
        )
        past = now is not None and not match["y"] and day < now.date()
        return day.replace(year=day.year + 1) if past else day
    except ValueError:
        return None


def _day(match: re.Match[str], now: datetime | None) -> date | None:
    if now is None:
        return None
    word = match["day"].casefold()
    if word in _WEEKDAYS:
        return now.date() + timedelta((_WEEKDAYS.index(word) - now.weekday() - 1) % 7 + 1)
    ahead = 2 if "after" in word else 1 if word == "tomorrow" else 0
    return now.date() + timedelta(ahead)


def _clock(match: re.Match[str] | None) -> time | None:
    if match is None:
        return None
    if match["noon"]:
        return time(12)
    hour = int(match["h"] or match["h2"] or match["h3"])
    half = (match["ap"] or match["ap2"] or "").casefold()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    minute = int(match["m"] or 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None


def _span(match: re.Match[str]) -> timedelta:
    count = match["n"].casefold()
    unit = _UNITS[match["unit"][0].casefold()]
    if count == "half an":
        return timedelta(**{unit: 1}) / 2
    return timedelta(**{unit: int(count) if count.isdigit() else 1})


def _interval(match: re.Match[str]) -> str:
    if match["word"]:
        return {"hourly": "1h", "daily": "1d", "weekly": "7d"}[match["word"].casefold()]
    count, unit = max(1, int(match["n"] or 1)), match["unit"][0].casefold()
    return f"{7 * count}d" if unit == "w" else f"{count}{unit}"


def _without(text: str, match: re.Match[str] | None) -> str:
    if match is None:
        return text
    return " ".join((text[: match.start()] + " " + text[match.end() :]).split())


def _tidy(text: str) -> str:
    """One line that cannot be taken for a mark of the checklist."""
    flat = " ".join(text.split()).strip(" ,.;:-–").replace("(", "[").replace(")", "]")
    return flat.removeprefix("to ")
