"""Parses expressions of dates: which days a phrase means on a given day."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from datetime import date, timedelta

from msgspec import Struct

HALF_A_YEAR = 183


def _number_words(*lists: str, first: int) -> dict[str, int]:
    """Map each word to the number of its list."""
    return {word: number for number, words in enumerate(lists, first) for word in words.split()}


_MONTHS = _number_words(
    "january jan januar janvier enero",
    "february feb februar fevrier febrero",
    "march mar marz maerz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug aout agosto",
    "september sept sep septembre septiembre",
    "october oct oktober octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember decembre diciembre",
    first=1,
)
_WEEKDAYS = _number_words(
    "monday montag lundi lunes",
    "tuesday dienstag mardi martes",
    "wednesday mittwoch mercredi miercoles",
    "thursday donnerstag jeudi jueves",
    "friday freitag vendredi viernes",
    "saturday samstag sonnabend samedi sabado",
    "sunday sonntag dimanche domingo",
    first=0,
)
_NUMBERS = _number_words(
    "a an one einem einer un une una",
    "two zwei deux dos couple",
    "three drei trois tres",
    "four vier quatre cuatro",
    "five funf cinq cinco",
    "six sechs seis",
    "seven sieben sept siete",
    "eight acht huit ocho",
    "nine neun neuf nueve",
    "ten zehn dix diez",
    first=1,
)
_ORDINALS = _number_words(
    "first ersten primero premier", "second zweiten", "third dritten", "fourth", "fifth", first=1
)
_DAYS_AGO = {
    "today": 0, "tonight": 0, "heute": 0, "hoy": 0, "aujourd'hui": 0, "this morning": 0,
    "yesterday": 1, "last night": 1, "gestern": 1, "hier": 1, "ayer": 1, "anoche": 1,
    "the day before yesterday": 2, "day before yesterday": 2, "vorgestern": 2, "avant-hier": 2,
    "anteayer": 2, "tomorrow": -1,
}  # fmt: skip
_FEASTS = {
    "christmas eve": (12, 24), "heiligabend": (12, 24), "christmas day": (12, 25),
    "christmas": (12, 25), "weihnachten": (12, 25), "noel": (12, 25), "navidad": (12, 25),
    "boxing day": (12, 26), "new year's eve": (12, 31), "silvester": (12, 31),
    "new year's day": (1, 1), "halloween": (10, 31), "valentine's day": (2, 14),
    "day of german unity": (10, 3),
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SATURDAY = 5  # of `date.weekday`
_LAST = "last|past|previous|letzte[nrs]?|vergangene[nrs]?"


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_M, _W = _any(_MONTHS), _any(_WEEKDAYS)
_N = rf"\d{{1,3}}|{_any(_NUMBERS)}"
_YEAR = r"(?:,?\s+(?:de\s+)?((?:19|20)\d\d))?"
_UNIT = (
    r"days?|tag(?:en)?|jours?|dias?|weeks?|wochen?|semaines?|semanas?|months?|monat(?:en)?|mois"
    r"|mes(?:es)?|years?|jahr(?:en)?|ans?|anos?"
)
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)"))
    for name, pattern in (
        ("iso", r"((?:19|20)\d\d)-(\d\d)-(\d\d)"),
        ("german", r"(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)"),
        ("span", (
            rf"(\d{{1,2}})(?:st|nd|rd|th|\.)?\s*(?:to|until|till|bis|and|-|–)\s*(\d{{1,2}})(?:st"
            rf"|nd|rd|th|\.)?\s+(?:of\s+)?({_M}){_YEAR}"
            )),
        ("day month", (
            rf"(\d{{1,2}}|{_any(_ORDINALS)})(?:st|nd|rd|th|\.|er)?\s+(?:of\s+|de\s+)?({_M}){_YEAR}"
            )),
        ("month day", rf"({_M})\s+(\d{{1,2}})(?:st|nd|rd|th)?{_YEAR}"),
        ("ago", (
            rf"({_N})\s+({_UNIT})\s+ago|vor\s+({_N})\s+({_UNIT})|il y a\s+({_N})\s+({_UNIT})"
            rf"|hace\s+({_N})\s+({_UNIT})"
            )),
        ("recent", rf"(?:(?:in|over|during|for)\s+)?(?:the\s+)?(?:{_LAST})\s+({_N})\s+({_UNIT})"),
        ("days ago", _any(_DAYS_AGO)),
        ("feast", _any(_FEASTS)),
        ("this weekend", (
            r"(?:this|dieses)\s+(?:weekend|wochenende)|ce week-end|este fin de semana"
            )),
        ("last weekend", (
            rf"(?:the\s+)?(?:{_LAST})\s+(?:weekend|wochenende)|le week-end dernier|el fin de "
            r"semana pasado"
            )),
        ("last week", rf"(?:{_LAST})\s+(?:week|woche)|la semaine derniere|la semana pasada"),
        ("this week", r"(?:this|diese)\s+(?:week|woche)|cette semaine|esta semana"),
        ("last month", rf"(?:{_LAST})\s+(?:month|monat)|le mois dernier|el mes pasado"),
        ("this month", r"(?:this|diesen)\s+(?:month|monat)|ce mois-ci|este mes"),
        ("last year", rf"(?:{_LAST})\s+(?:year|jahr)|l'annee derniere|el ano pasado"),
        ("this year", r"(?:this|dieses)\s+(?:year|jahr)|cette annee|este ano"),
        ("weekday", rf"(?:(?:on|{_LAST}|am|el|le|this)\s+)({_W})(?:\s+(?:pasado|dernier))?"),
        ("season", (
            rf"(?:in|during|{_LAST}|this)\s+(?:the\s+)?({_any(_SEASONS)})(?:\s+(?:of\s+)?((?:19"
            r"|20)\d\d))?"
            )),
        ("month", (
            r"(?:in|during|of|since|last|early|late|mid|im|en|seit|depuis|desde|until"
            rf"|by)\s+({_M}){_YEAR}|({_M})\s+((?:19|20)\d\d)"
            )),
        ("year", r"(?:in|during|of|im jahr|en)\s+((?:19|20)\d\d)"),
    )
)  # fmt: skip
_RELATIVE = frozenset(
    ("ago", "recent", "days ago", "last weekend", "this weekend", "last week", "this week",
     "last month", "this month", "last year", "this year", "weekday", "season")
)  # fmt: skip


_HINT = re.compile(rf"\d-\d\d-\d|\d\.\d{{1,2}}\.\d|(?<!\w)(?:{_M})(?!\w)")
_UNITS = {
    "day": "day", "night": "day", "evening": "day", "morning": "day", "tag": "day", "jour": "day",
    "dia": "day", "week": "week", "woche": "week", "semaine": "week", "semana": "week",
    "weekend": "weekend", "wochenende": "weekend", "month": "month", "monat": "month",
    "mois": "month", "mes": "month",
}  # fmt: skip
_SIDES = {
    "after": "after", "following": "after", "nach": "after", "apres": "after",
    "despues de": "after", "before": "before", "vor": "before", "avant": "before",
    "antes de": "before", "of": "in", "during": "in", "der": "in", "des": "in",
}  # fmt: skip
_ANCHOR = re.compile(
    rf"(?<!\w)(?:(?P<count>{_any(_ORDINALS)})\s+)?(?P<unit>{_any(_UNITS)})\s+(?:right\s+|just\s+)?"
    rf"(?P<side>{_any(_SIDES)})\s+(?P<event>[^?.!,;]{{3,80}})"
)
_CLOSING = re.compile(
    r"\b(?:ended|ends|was over|end of|came back from|got back from|returned from)\b"
)


# Words that make a date the edge of a longer period.
_EDGE = re.compile(
    r"\b(?:before|after|since|until|till|by|vor|nach|seit|bis|avant|apres|depuis|antes de|"
    r"despues de|desde|hasta)\s+(?:the\s+|dem\s+|zum\s+|le\s+|el\s+)?$"
)
_OPEN = re.compile(r"(?:since|until|by|seit|depuis|desde)\s")
_BEFORE = 20  # characters before a date that are examined
_AT = re.compile(r"\b(?:on|at|over|during|last|this|an|zu|am|uber|a|en|pour)\s+$")


class NamedDays(Struct, frozen=True):
    """Days that a text names, both ends included, and their place in the text.

    `relative`: the words have a meaning only together with the day on which they were said.
    `is_when`: the words say only when; the name of a feast can also mean the feast itself, and
    "since Monday" means more than that day.
    """

    first: date
    last: date
    start: int
    end: int
    relative: bool
    is_when: bool


class AnchoredDays(Struct, frozen=True):
    """Days named by an event: the `unit` on a `side` of it, or the `count`-th unit within it."""

    unit: str
    side: str
    count: int
    event: str
    closing: bool  # whether the end of the event is meant
    start: int
    end: int
    event_start: int


def find_days(text: str, today: date) -> list[NamedDays]:
    """Return the days that a folded text (no case, no accents) names, as of `today`, in the order
    of the rules; a place in the text counts once. A date without a year is the latest one that has
    begun.
    """
    found: list[NamedDays] = []
    for rule, pattern in _RULES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < other.end and other.start < end for other in found):
                continue
            try:
                days = _days(rule, match, today)
            except (ValueError, OverflowError):  # 31 June, year 0
                continue
            before = text[max(0, start - _BEFORE) : start]
            is_when = not (_EDGE.search(before) or _OPEN.match(match.group()))
            is_when &= rule != "feast" or _AT.search(before) is not None
            found.append(NamedDays(*days, start, end, rule in _RELATIVE, is_when))
    return found


def dates_in(text: str, written: date | None) -> tuple[date, date] | None:
    """Return the first days that a folded text names as a date; None if it names none. A date
    without a year is the one nearest to the day `written`; without that day only dates with a year
    count.
    """
    if _HINT.search(text) is None:
        return None
    absolute = [n for n in find_days(text, written or date.min.replace(year=2)) if not n.relative]
    first = min(absolute, key=lambda n: n.start, default=None)
    if first is None or first.first.year < 1900:
        return None
    days = first.first, first.last
    stated = re.search(r"(?:19|20)\d\d", text[first.start : first.end]) is not None
    if written is not None and not stated and (written - days[0]).days > HALF_A_YEAR:
        return _a_year_on(days[0]), _a_year_on(days[1])
    return days


def beside(anchor: tuple[date, date], unit: str, side: str, count: int) -> tuple[date, date]:
    """Return the first and last day of the day, week, weekend or month before, after or in the span
    `anchor`; within it, `count` is the number of the week or day, 0 for the whole span.
    """
    first, last = anchor
    if side not in {"before", "after"}:
        if not count and unit == "week" and first == last:
            monday = first - timedelta(days=first.weekday())
            return monday, monday + timedelta(days=6)
        if not count:
            return anchor
        days = 7 if unit == "week" else 1
        begin = first + timedelta(days=days * (count - 1))
        return begin, begin + timedelta(days=days - 1)
    if unit == "weekend":
        day = last + timedelta(days=1) if side == "after" else first - timedelta(days=7)
        saturday = day + timedelta(days=(5 - day.weekday()) % 7)
        return saturday, saturday + timedelta(days=1)
    if side == "after":
        ahead = {"day": 1, "week": 13 - last.weekday(), "month": 31}[unit]
        return last + timedelta(days=1), last + timedelta(days=ahead)
    back = {"day": 1, "week": 7 + first.weekday(), "month": 31}[unit]
    return first - timedelta(days=back), first - timedelta(days=1)


def find_anchor(text: str) -> AnchoredDays | None:
    """Return the part of a folded text that names days by an event; None if there is none."""
    match = _ANCHOR.search(text)
    if match is None:
        return None
    count = _ORDINALS.get(match["count"] or "", 0)
    unit = _UNITS[match["unit"]]
    event = match["event"]
    closing = _CLOSING.search(event) is not None
    side = _SIDES[match["side"]]
    return AnchoredDays(
        unit, side, count, _CLOSING.sub(" ", event), closing, *match.span(), match.start("event")
    )


def _a_year_on(day: date) -> date:
    return day.replace(year=day.year + 1, day=28 if (day.month, day.day) == (2, 29) else day.day)


def _days(rule: str, match: re.Match[str], today: date) -> tuple[date, date]:
    given = [group for group in match.groups() if group is not None]
    if rule == "iso":
        return _one(date(*map(int, given)))
    if rule == "german":
        return _one(date(int(given[2]), int(given[1]), int(given[0])))
    if rule == "span":
        month = _MONTHS[given[2]]
        year = int(given[3]) if len(given) > 3 else _year(month, int(given[0]), today)
        return date(year, month, int(given[0])), date(year, month, int(given[1]))
    if rule in {"day month", "month day"}:
        day_first = rule == "day month"
        month = _MONTHS[given[1 if day_first else 0]]
        figure = given[0 if day_first else 1]
        day = int(figure) if figure.isdigit() else _ORDINALS[figure]
        year = int(given[2]) if len(given) > 2 else _year(month, day, today)
        return _one(date(year, month, day))
    if rule in {"ago", "recent"}:
        return _count_days(rule, given, today)
    if rule == "month":
        month = _MONTHS[given[0]]
        return _month(int(given[1]) if len(given) > 1 else _year(month, 1, today), month)
    return _relative(rule, match.group(), given, today)


def _relative(rule: str, text: str, given: list[str], today: date) -> tuple[date, date]:
    monday = today - timedelta(days=today.weekday())
    if rule == "days ago":
        return _one(today - timedelta(days=_DAYS_AGO[text]))
    if rule == "feast":
        month, day = _FEASTS[text]
        return _one(date(_year(month, day, today), month, day))
    if rule in {"last weekend", "this weekend"}:
        is_on = rule == "this weekend" and today.weekday() >= _SATURDAY  # else the past one
        saturday = monday + timedelta(days=_SATURDAY if is_on else -2)
        return saturday, saturday + timedelta(days=1)
    if rule in {"last week", "this week"}:
        start = monday - timedelta(days=7 if rule == "last week" else 0)
        return start, start + timedelta(days=6)
    if rule in {"last month", "this month"}:
        inside = today.replace(day=1) - timedelta(days=1 if rule == "last month" else 0)
        return _month(*(inside if rule == "last month" else today).timetuple()[:2])
    if rule in {"last year", "this year", "year"}:
        year = int(given[0]) if rule == "year" else today.year - (rule == "last year")
        return date(year, 1, 1), date(year, 12, 31)
    if rule == "weekday":
        back = (today.weekday() - _WEEKDAYS[given[0]] - 1) % 7 + 1
        return _one(today - timedelta(days=back))
    opening = _SEASONS[given[0]]
    year = int(given[1]) if len(given) > 1 else _year(opening, 1, today)
    first = date(year, opening, 1)
    return first, _month((first + timedelta(days=70)).year, (first + timedelta(days=70)).month)[1]


def _count_days(rule: str, given: list[str], today: date) -> tuple[date, date]:
    count = int(given[0]) if given[0].isdigit() else _NUMBERS[given[0]]
    unit = given[1]
    days = 1 if (unit[0] in "dj" and not unit.startswith("jahr")) or unit.startswith("tag") else 7
    if unit.startswith(("mo", "mes")):
        days = 30
    elif unit.startswith(("y", "jahr", "an")):
        days = 365
    middle = today - timedelta(days=count * days)
    slack = timedelta(days=0 if days == 1 else days // 4)
    return (middle, today) if rule == "recent" else (middle - slack, middle + slack)


def _one(day: date) -> tuple[date, date]:
    return day, day


def _month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def _year(month: int, day: int, today: date) -> int:
    """Return the year of the latest such day that has begun."""
    return today.year if (month, day) <= (today.month, today.day) else today.year - 1
