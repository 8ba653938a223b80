"""What a sentence says of the one thing that it names with “the” or “my”: “the boiler code is 4417”."""

from __future__ import annotations

import re

from agentd.domain.fact import Triple
from agentd.statements.calendar import DAYS, MONTHS, WEEKDAYS
from agentd.statements.normal import normalised

LONGEST = 160  # characters of such a sentence

_SENTENCE = re.compile(
    r"(?:(?:the )?user's|my|our|the) (?P<n>(?-i:[a-z])[\w-]*(?:(?:'s)? [\w-]+){0,3}?)"
    r"(?: is(?: now| currently)?| (?:was |has )?changed to)"
    r" (?P<v>(?:an? )?\S[^,;:!?()]*?)(?: now| currently| at the moment| these days)?[.!]*",
    re.IGNORECASE,
)
# Of these there are several at once or one after the other, or they are no things at all. A pattern.
SEVERAL = (
    r"(?:meeting|appointment|call|lesson|class|train|bus|flight|game|match|party|event|session"
    r"|date|visit|trip|interview|exam|test|show|concert|talk|lecture|seminar|workshop|collection"
    r"|movie|film|episode|one|thing|problem|question|point|reason|guest|visitor|winner|speaker"
    r"|hobby|skill|language|allergy|medication|medicine|drug|pill|supplement|vitamin|diagnosis"
    r"|illness|disease|condition|project|goal|task|idea|subject|course|book|song|game|sport|team|band"
    r"|instrument|pet|plant|account|card|client|customer|supplier|student|pupil|patient|employee"
    r"|tenant|contact|mentor|hero"
    # Whom one is, a doctor and a Catholic, one is besides others: rules know what holds of people.
    r"|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|child|kid|baby|brother"
    r"|sister|cousin|uncle|aunt|nephew|niece|mother|father|mum|mom|dad|parent|grandmother|grandfather"
    r"|grandma|grandpa|in-law|friend|colleague|neighbou?r|roommate|flatmate|co-?worker|class-?mate"
    r"|teammate|boss|manager|assistant|landlord|landlady|doctor|dentist|lawyer|coach|teacher|vet)"
)
_NO_ONE_THING = re.compile(rf".*\b{SEVERAL}")
_NUMBER = re.compile(r"[^\s\d]*\d\S*(?: [^\s\d]*\d\S*){0,4}")
_NAME = re.compile(r"[A-ZÀ-Þ][\w'&+./-]*(?: (?:[A-ZÀ-Þ\d][\w'&+./-]*|of|the|de|van|von)){0,4}")
_NO_NAME = re.compile(r"\w+(?:ish|ian|ean|ese|can|man|tch|ench|eek|iss)")  # “is Swedish”
_CLOCK = re.compile(
    r".*\d(?:[:.]\d\d)? ?(?:[ap]\.?m\.?|uhr|o'clock)|.*\d:\d\d\b.*|\d{1,4}[-./]\d.*"
)
_TIMES = frozenset((*MONTHS, *WEEKDAYS, *DAYS))


def definite(text: str) -> Triple | None:
    """The triple of a sentence that gives the only thing of its kind a number, a name or, with an
    “a”, a brand or a model; None for any other. Days and times are left out: there is more than
    one meeting.
    """
    match = _SENTENCE.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None or _NO_ONE_THING.fullmatch(thing := normalised(match["n"])):
        return None
    value = match["v"].strip()
    words = set(normalised(value).split())
    if words & _TIMES or _CLOCK.fullmatch(value.casefold()):
        return None
    if _NUMBER.fullmatch(value):
        return Triple("user", f"number of the {thing}", value)
    bare = re.sub(r"\A(?:an?|An?) ", "", value)
    if _NAME.fullmatch(bare) is None or (bare == value and _NO_NAME.fullmatch(value)):
        return None
    return Triple("user", f"the {thing}" if bare == value else f"kind of the {thing}", bare)
