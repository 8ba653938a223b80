"""Reads days and times as people write them, in statements and in requests for reminders. Pure."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import MAXYEAR, date, datetime, time, timedelta

from msgspec import Struct

_MONTHS = (
    "january jan januar", "february feb februar", "march mar märz", "april apr", "may mai",
    "june jun juni", "july jul juli", "august aug", "september sept sep",
    "october oct oktober okt", "november nov", "december dec dezember dez",
)  # fmt: skip
_WEEKDAYS = (
    "monday montag", "tuesday dienstag", "wednesday mittwoch", "thursday donnerstag",
    "friday freitag", "saturday samstag", "sunday sonntag",
)  # fmt: skip
MONTHS = {name: n for n, names in enumerate(_MONTHS, 1) for name in names.split()}
WEEKDAYS = {name: n for n, names in enumerate(_WEEKDAYS) for name in names.split()}
_AHEAD = {
    "today": 0, "heute": 0, "tonight": 0, "tomorrow": 1, "morgen": 1,
    "day after tomorrow": 2, "the day after tomorrow": 2, "übermorgen": 2,
}  # fmt: skip

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(WEEKDAYS)
_SOON = "|".join(sorted(_AHEAD, key=len, reverse=True))
_HOUR = r"\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\.?| uhr| o'clock)?"
_DATE = (
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{4}})?"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? (?:{_MONTH})\.?(?:,? \d{{4}})?"
    rf"|(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? \d{{4}})?"
)
# A pattern for one definite day, with or without a time. It has no groups.
WHEN = (
    rf"(?:(?:(?:{_WEEKDAY}),? (?:the )?)?(?:{_DATE})"
    rf"|(?:(?:next|this|nächsten|diesen) )?(?:{_WEEKDAY})|{_SOON})(?:,?(?: at| um| from)? {_HOUR})?"
)
_NAMED_DAY = re.compile(
    (
        rf"(?<![\w-])(?:(?:on |am )?(?:(?:next|this|nächsten|diesen) )?(?P<weekday>{_WEEKDAY})"
        rf"|(?P<soon>{_SOON}))(?![\w-])"
    ),
    re.IGNORECASE,
)
_A_DATE = re.compile(
    rf"(?:\bon )?(?:\bthe )?(?<![\w.])(?:(?P<iso>\d{{4}}-\d\d-\d\d)"
    rf"|(?P<day>\d{{1,2}})\.(?P<number>\d{{1,2}})\.(?P<y3>\d{{4}})?"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? (?P<m1>{_MONTH})\b\.?(?:,? (?P<y1>\d{{4}}))?"
    rf"|(?P<m2>{_MONTH})\.? (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,? (?P<y2>\d{{4}}))?)",
    re.IGNORECASE,
)

# Dates whose parts may be in either order, and days in the past.
_OTHER_DATE = re.compile(
    r"(?<![\w./-])(?:\d{4}[/.-]\d{1,2}[/.-]\d{1,2}|\d{1,2}[/-]\d{1,2}[/-]\d{4}"
    r"|\d{1,2}/\d{1,2}/\d\d)(?![\w/-])"
)
_PAST_DAY = re.compile(
    (
        r"(?<![\w-])(?:(?:the day before )?yesterday|(?:vor)?gestern|(?:last|letzten|letzte) "
        rf"(?:{_WEEKDAY}|week|month|year|woche))(?![\w'’-])"
    ),
    re.IGNORECASE,
)
_A_LEAP_YEAR = 2028
_YEARS = 8  # until the next 29 February, at the longest
_CHARS = 1_000  # looked at in a request for a reminder
_MORNING, _EVENING = time(9), time(20)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_UNIT = r"(?P<unit>m|min|mins|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\b"
_EVERY = re.compile(
    rf"\b(?:every|each) (?:(?P<n>\d{{1,4}}) ?)?{_UNIT}|\b(?P<word>hourly|daily|weekly)\b",
    re.IGNORECASE,
)
_IN = re.compile(rf"\bin (?P<n>\d{{1,4}}|an?|half an) ?{_UNIT}", re.IGNORECASE)
_TIME = re.compile(
    r"\b(?:at |by )?(?P<h>\d{1,2}):(?P<m>\d{2}) ?(?P<ap>[ap]m)?\b"
    r"|\b(?:at |by )?(?P<h2>\d{1,2}) ?(?P<ap2>[ap]m)\b|\bat (?P<h3>\d{1,2})(?: o['’]clock)?\b"
    r"|\bat (?P<noon>noon|midday)\b",
    re.IGNORECASE,
)


class TimedTask(Struct, frozen=True):
    """A task and its due time. `marks` is the time as marks of the checklist, "" when no time was
    found. `at` is the due time of a task that is due once, else "".
    """

    task: str
    marks: str = ""
    at: str = ""
    objection: str = ""  # why the time cannot be used, for the user

    @property
    def entry(self) -> str:
        """The task as a line of HEARTBEAT.md."""
        return f"- [ ] {self.task} {self.marks}".rstrip()


def with_date(text: str, said_on: date | None) -> str | None:
    """Return the text with a relative day (“tomorrow”, “Friday”) replaced by its date; None when
    there is one, but `said_on` is unknown. A weekday is the next to come; beside a date it is kept.
    """
    match = _NAMED_DAY.search(text)
    if match is None or (match["weekday"] and _A_DATE.search(text)):
        return text
    if said_on is None:
        return None
    head = text[: match.start()].rstrip()
    on = "" if not head or head.endswith((" on", " am")) else "on "
    day = _ahead(match, said_on).isoformat()
    return f"{text[: match.start()]}{on}{day}{text[match.end() :]}"


def last_day(text: str, said_on: date | None) -> date | None:
    """Return the latest date in the text; None if there is none. A date without a year is the next
    to come.
    """
    days = (_on(match, said_on) for match in _A_DATE.finditer(text))
    return max((day for day in days if day is not None), default=None)


def is_time(text: str, now: datetime | None) -> bool:
    """Whether the whole text is understood as a time."""
    flat = " ".join(text[:_CHARS].split())
    _, rest = _due(_without(flat, _EVERY.search(flat)), now)
    return not plain_entry(rest)


def split_time(text: str, now: datetime | None) -> TimedTask:
    """Split the text into a task and its time. Relative times need `now`, the owner's wall time.

    “water the plants every 2h” becomes `water the plants` with `(every: 2h)`.
    """
    flat = " ".join(text[:_CHARS].split())
    if objection := _objection(flat, now):
        return TimedTask(plain_entry(text), objection=objection)
    every = _EVERY.search(flat)
    due, rest = _due(_without(flat, every), now)
    at = f"{due:%Y-%m-%d %H:%M}" if due is not None else ""
    marks = [f"(due: {at})"] if at else []
    if every is not None:
        marks.append(f"(every: {_interval(every)})")
    if not marks:
        return TimedTask(plain_entry(text))
    return TimedTask(
        plain_entry(rest) or plain_entry(flat), " ".join(marks), "" if every is not None else at
    )


def _ahead(match: re.Match[str], today: date) -> date:
    if match["weekday"]:
        days = (WEEKDAYS[match["weekday"].casefold()] - today.weekday() - 1) % 7 + 1
    else:
        days = _AHEAD[match["soon"].casefold()]
    return today + timedelta(days) if today.year < 9999 else today


def _objection(text: str, now: datetime | None) -> str:
    """Return why a reminder is impossible at the day or time in the text; "" if it is possible."""
    today = now.date() if now is not None else None
    if found := _A_DATE.search(text):
        words = found[0].strip().removeprefix("on ")
        try:
            day = _day(found, today)
        except ValueError:
            return f"there is no day “{words}”; say which one is meant"
        if day is not None and today is not None and day < today:
            return f"“{words}” is over; say a day to come"
    elif found := _OTHER_DATE.search(text):
        return f"it is not certain which day “{found[0]}” is; write it like 2027-05-04"
    elif (found := _PAST_DAY.search(text)) and not _names_day(_without(text, found)):
        return f"“{found[0]}” is over; say a day to come"
    clock = next((one for one in _TIME.finditer(text) if one["m"] and _clock(one) is None), None)
    return f"there is no time “{clock['h']}:{clock['m']}”; say which one is meant" if clock else ""


def _names_day(text: str) -> bool:
    return any(pattern.search(text) for pattern in (_NAMED_DAY, _IN, _EVERY))


def _on(match: re.Match[str], today: date | None) -> date | None:
    try:
        return _day(match, today)
    except ValueError:
        return None


def _day(match: re.Match[str], today: date | None) -> date | None:
    """Return the day of a date, the next to come if it has no year; None if `today` is unknown
    then. Raises ValueError if there is no such day.
    """
    if match["iso"]:
        return date.fromisoformat(match["iso"])
    year = match["y1"] or match["y2"] or match["y3"]
    month = int(match["number"] or MONTHS[(match["m1"] or match["m2"]).casefold()])
    number = int(match["day"] or match["d1"] or match["d2"])
    if year:
        return date(int(year), month, number)
    date(_A_LEAP_YEAR, month, number)
    if today is None:
        return None
    years = range(today.year, min(today.year + _YEARS, MAXYEAR) + 1)
    days = (date(y, month, number) for y in years if number <= monthrange(y, month)[1])
    return next((day for day in days if day >= today), None)


def _due(text: str, now: datetime | None) -> tuple[datetime | None, str]:
    """Return the due time (None: none found) and the text without the words for it."""
    if (soon := _IN.search(text)) and now is not None:
        return _after(now, _span(soon)), _without(text, soon)
    today = now.date() if now else None
    for pattern in (_A_DATE, _NAMED_DAY):
        match = pattern.search(text)
        if match is None:
            continue
        day = _on(match, today) if pattern is _A_DATE else today and _ahead(match, today)
        if day is None:
            continue
        rest = _without(text, match)
        clock = _TIME.search(rest)
        default = _EVENING if match[0].casefold().endswith("tonight") else _MORNING
        return datetime.combine(day, _clock(clock) or default), _without(rest, clock)
    clock = _TIME.search(text)
    at_time = _clock(clock)
    if at_time is None or now is None:
        return None, text
    due = datetime.combine(now.date(), at_time)
    return due if due > now else due + timedelta(days=1), _without(text, clock)


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


def _after(now: datetime, span: timedelta) -> datetime:
    """Return the first whole minute at least `span` after `now`. A prompt gives the time in whole
    minutes, so up to 59 seconds more may have passed. Whole days keep the time of day.
    """
    whole = now.replace(second=0, microsecond=0) + span
    return whole if span % timedelta(days=1) == timedelta() else whole + timedelta(minutes=1)


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


def plain_entry(text: str) -> str:
    """Return the text as one line that cannot be mistaken for a mark of the checklist."""
    flat = " ".join(text.split()).strip(" ,.;:-–").replace("(", "[").replace(")", "]")
    return flat.removeprefix("to ")
