"""Words of the calendar, and days as people write them."""

from __future__ import annotations

import re
from datetime import date, timedelta

MONTHS = {
    name: f"m{number}"
    for number, names in enumerate(
        (
            "january jan januar", "february feb februar", "march mar märz", "april apr", "may mai",
            "june jun juni", "july jul juli", "august aug", "september sept sep",
            "october oct oktober okt", "november nov", "december dec dezember dez",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
WEEKDAYS = {
    name: f"d{number}"
    for number, names in enumerate(
        (
            "monday montag mondays", "tuesday dienstag tuesdays", "wednesday mittwoch wednesdays",
            "thursday donnerstag thursdays", "friday freitag fridays", "saturday samstag saturdays",
            "sunday sonntag sundays",
        )
    )
    for name in names.split()
}  # fmt: skip
DAYS = ("today", "tonight", "tomorrow", "yesterday", "heute", "morgen", "gestern")

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
_TIME = r"\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\.?| uhr| o'clock)?"
_DAY = (
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{2,4}})?|\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? (?:{_MONTH})\.?(?:,? \d{{4}})?"
    rf"|(?:{_MONTH})\.?(?: \d{{1,2}}(?:st|nd|rd|th)?(?!\d))?(?:,? \d{{4}})?"
    r"|the \d{1,2}(?:st|nd|rd|th)"
)
_SOON = rf"(?:(?:next|this|nächsten|diesen) )?(?:{_WEEKDAY})|tomorrow|today|tonight|morgen|heute"
# A day, or a day that is known only on the day it was said; with or without a time. No groups.
WHEN = (
    rf"(?:(?:(?:{_WEEKDAY}),? (?:the )?)?(?:{_DAY})|{_SOON})"
    rf"(?:,?(?: at| um| from)? {_TIME})?(?: (?:at|um) {_TIME})?"
)
_RELATIVE = re.compile(
    rf"(?<![\w-])(?:(?:on |am )?(?P<which>next|this|nächsten|diesen)? ?(?P<weekday>{_WEEKDAY})"
    r"|(?P<day>tomorrow|today|tonight|morgen|heute))(?![\w-])",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(rf"(?<!\w)(?:{_DAY})(?!\w)", re.IGNORECASE)
_AHEAD = {"tomorrow": 1, "morgen": 1}


def dated(text: str, said_on: date | None, *, is_past: bool = False) -> str | None:
    """The text with days that only make sense on the day it was said told as dates; None when it
    names such a day and the day it was said is unknown. A weekday is the next one to come,
    or the last that was if `is_past`; beside a date it stays, and in the plural it is every week's.
    """
    match = _RELATIVE.search(text)
    if match is None or (match["weekday"] and _ABSOLUTE.search(text)):
        return text
    if match["weekday"] and match["weekday"].casefold().endswith("days"):
        return text
    if said_on is None:
        return None
    if match["weekday"]:
        ahead = (int(WEEKDAYS[match["weekday"].casefold()][1:]) - said_on.weekday() - 1) % 7 + 1
        ahead -= 7 if is_past else 0
    else:
        ahead = _AHEAD.get(match["day"].casefold(), 0)
    day = said_on + timedelta(days=ahead) if 1 < said_on.year < 9999 else said_on
    head, tail = text[: match.start()], text[match.end() :]
    on = "" if head.rstrip().endswith((" on", " am")) or not head.strip() else "on "
    return f"{head}{on}{day.isoformat()}{tail}"
