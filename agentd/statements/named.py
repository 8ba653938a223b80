"""What a sentence says of somebody or something by name: “Klara works at Roche”, “my dog Max is ill”."""

from __future__ import annotations

import re

from agentd.domain.fact import Triple
from agentd.statements.calendar import DAYS, MONTHS, WEEKDAYS
from agentd.statements.normal import normalised
from agentd.statements.telling import share_said, telling_words

LONGEST = 160  # characters of such a sentence

_WORD = r"[A-ZÀ-Þ][\w'&+/-]*"
_PLACE = rf"(?:[Tt]he )?(?P<v>{_WORD}(?: (?:{_WORD}|of|the|am|de|la|van|von)){{0,4}})"
_STILL = r"(?:(?:now|currently|still) )?"
_NOW = r"(?: (?:now|currently|these days))?[.!]*"
_SUBJECT = rf"(?:(?:(?:[Tt]he )?[Uu]ser's|[Mm]y|[Oo]ur) (?P<k>[a-z-]+) (?!is\b))?(?P<n>{_WORD}(?: {_WORD})?)"
_SAYINGS = {
    "home": re.compile(rf"{_SUBJECT} {_STILL}lives (?:now )?in {_PLACE}{_NOW}"),
    "employer": re.compile(rf"{_SUBJECT} {_STILL}works (?:now )?(?:at|for) {_PLACE}{_NOW}"),
    "is a": re.compile(rf"{_SUBJECT} is (?:now )?an? (?P<v>[\w-]+(?: [\w-]+){{0,2}}?){_NOW}"),
}
_NO_NAME = (
    "i you he she it we they this that these those there here who what which whoever everybody"
    " everyone everything somebody someone something nobody nothing anybody anyone one all both each"
    " the a an my your his her its our their user if when where why how not never maybe perhaps and"
    " but so or er sie es wir ihr das dies wer was der die mein dein sein unser"
)
_NO_NAMES = frozenset(_NO_NAME.split())
_TIMES = frozenset((*MONTHS, *WEEKDAYS, *DAYS))
_NO_KIND = re.compile(
    r"(?:bit|little|lot|few|couple|kind|sort|fan|way|must|no)\b|.*\b(?:of|to|and|or)\b"
)
_NAMING = re.compile(r"\b(?:called|named?|names|hei(?:ß|ss)t|nenn\w+)\b", re.IGNORECASE)
_MINE = re.compile(r"(?:my|our)\b(?=\s)", re.IGNORECASE)
_OWN = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|me|my|mine|myself|we|us|our|ours|ourselves)\b", re.IGNORECASE
)


def named(text: str) -> Triple | None:
    """The triple of a sentence that says of one name, “Max” or “the user's dog Max”, where it lives or
    works, or what it is; None for any other. The first two hold one value at a time, and a thing may
    be several things at once.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return None
    for relation, pattern in _SAYINGS.items():
        match = pattern.fullmatch(text)
        if match is None:
            continue
        words = frozenset(normalised(match["n"]).split())
        value = match["v"].strip()
        held = frozenset(normalised(value).split())
        is_vague = bool(words & (_NO_NAMES | _TIMES) or held & _TIMES)
        if is_vague or (relation == "is a" and _NO_KIND.match(value.casefold())):
            return None
        kin = f"{match['k']} " if match["k"] else ""
        return Triple(f"{kin}{match['n']}", relation, value)
    return None


def is_by_the_way(triple: Triple, text: str) -> bool:
    """Whether a sentence gives the triple, a name, in passing and goes on to say something else: “my
    dog Max had surgery”.
    """
    if not triple.relation.endswith(" name") or _NAMING.search(text):
        return False
    _, found, behind = normalised(text).partition(normalised(triple.value))
    about = f"{triple.subject} {triple.relation} {triple.value}"
    return bool(found and telling_words(behind)) and share_said(behind, about) < 1.0


def of_the_user(text: str) -> str:
    """A sentence that begins with “my”, told of the user; the text as it is if it says more of the
    speaker than that.
    """
    mine = _MINE.match(text)
    if mine is None or _OWN.search(text, mine.end()):
        return text
    return f"The user's{text[mine.end() :]}"
