"""Days that paths and headings name."""

from __future__ import annotations

import re
from datetime import date

_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}(?::\d{2})?|"
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:[ap]m|utc)\b",
    re.ASCII | re.IGNORECASE,
)
_WORD = re.compile(r"\w")


def date_in(text: str) -> date | None:
    """The date that a path or a heading names, the last one if there are several."""
    for year, month, day in reversed(_DATE.findall(text)):
        try:
            return date(int(year), int(month), int(day))
        except ValueError:
            continue
    return None


def without_dates(title: str) -> str:
    """The heading, or "" if it names nothing but a day and an hour: chunks carry their day."""
    return title if _WORD.search(_TIME.sub("", title)) else ""
