"""What a query asks for, read from its text. Any string is valid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from agentd.ranking import moments
from agentd.ranking.moments import Anchored
from agentd.search import words

MAX_LETTERS = 10_000  # of a query that are looked at
MAX_TERMS = 48

_QUOTED = re.compile(r"[\"“«„`]([^\"“”«»„`]{2,200})[\"”»`“]")
_WHEN = re.compile(
    r"\b(?:when|what (?:day|date|time|year|month)|how (?:long|old|often|soon|recently)|which "
    r"(?:day|date|year|month|week)|since when|wann|seit wann|quand|cu[aá]ndo)\b",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\b(?:how (?:many|much|old|long|often|big|far|tall)|what (?:number|price|amount|size|version|port"
    r"|percentage)|wie ?viele?|combien|cu[aá]nt[oa]s?)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:before|original(?:ly)?|used to|previous(?:ly)?|former(?:ly)?|earlier|old(?:er)?|at first|"
    r"initial(?:ly)?|in the beginning|back then|history|changed from|vorher|fr[uü]her|urspr[uü]nglich|"
    r"avant|auparavant|antes|anterior)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|we|our|us)\b", re.IGNORECASE)
_SECOND_PERSON = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """A query's terms and what kind of answer it wants."""

    text: str
    terms: tuple[str, ...]  # distinct, in reading order
    spelled: Mapping[str, str]  # the folded word of a term
    names: tuple[str, ...]  # folded words that may be somebody's name
    exact: tuple[tuple[str, ...], ...]  # quoted phrases and identifiers, as terms
    asks_when: bool
    asks_amount: bool
    asks_past: bool
    roles: tuple[str, ...]  # whose words are meant: "user" for I, "assistant" for you
    window: tuple[int, int] | None = None  # first and last of the days that it names
    anchor: Anchored | None = None  # days that it names by an event


def parse(text: str, today: date | None = None) -> Query:
    """The query that a text makes; what lies past 10,000 letters is not looked at. Without `today`
    no days are read from it.
    """
    text = text[:MAX_LETTERS]
    found = list(words.raw_words(text))
    terms = tuple(dict.fromkeys(words.terms(text)))[:MAX_TERMS]
    window, anchor, spoken = _days(text, today)
    terms = tuple(term for term in terms if term not in spoken) or terms
    quoted = [tuple(words.terms(m.group(1))) for m in _QUOTED.finditer(text)]
    identifiers = [tuple(words.terms(w)[:1]) for w in found[:MAX_TERMS] if words.is_identifier(w)]
    folded = {w: words.fold(words.bare(w)) for w in found[:MAX_TERMS]}
    head = text[:500]
    roles = [role for role, said in (("user", _FIRST_PERSON), ("assistant", _SECOND_PERSON))
             if said.search(head)]  # fmt: skip
    return Query(
        text=text,
        terms=terms,
        spelled={term: plain for w, plain in folded.items() for term in words.terms(w)[:MAX_TERMS]},
        names=tuple(dict.fromkeys(folded.values())),
        exact=tuple(dict.fromkeys(e for e in [*quoted, *identifiers] if e)),
        asks_when=_WHEN.search(head) is not None,
        asks_amount=_AMOUNT.search(head) is not None,
        asks_past=_PAST.search(head) is not None,
        roles=tuple(roles),
        window=window,
        anchor=anchor,
    )


def _days(
    text: str, today: date | None
) -> tuple[tuple[int, int] | None, Anchored | None, frozenset[str]]:
    """The days that a text names, and the terms that only name days: nobody wrote "last week" into
    what is looked for.
    """
    if today is None:
        return None, None, frozenset()
    folded = words.fold(text[:500])
    anchor = moments.anchored(folded)
    found = [
        one
        for one in moments.named(folded, today)
        if anchor is None or one.end <= anchor.start or one.start >= anchor.end
    ]
    spoken = " ".join(folded[one.start : one.end] for one in found if one.relative)
    if anchor is not None:
        spoken += f" {anchor.unit}"
    window = (found[0].first.toordinal(), found[0].last.toordinal()) if found else None
    return window, anchor, frozenset(words.terms(spoken))
