"""Parses a query: its terms, phrases and days. Any string is valid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

from msgspec import Struct

from agentd.memory.index.ranking import temporal
from agentd.memory.index.ranking.temporal import AnchoredDays, NamedDays
from agentd.memory.index.search import words

MAX_TERMS = 48
_HEAD = 500  # leading characters that are searched for days

_QUOTED = re.compile(r"[\"“«„`]([^\"“”«»„`]{2,200})[\"”»`“]")
# Beside a date, these words only ask what there was: answers do not contain them.
_FILLERS = frozenset(
    words.terms(
        "note noted noting write wrote written happen happened happening say said saying tell "
        "told telling talk talked talking speak spoke spoken mention mentioned discuss discussed "
        "remember recall remind passiert passierte geschah geschehen notiert notiz notizen "
        "aufgeschrieben geschrieben gemacht getan gesagt erzahlt gesprochen geredet besprochen "
        "erinnere erinnerst passe fait faisait dit ecrit parle souviens rappelle paso hice "
        "hicimos hizo dije dijo anote escribi hable hablamos recuerdas ocurrio nota notas"
    )
)
# The same applies to these words, if nothing else is asked for.
_VAGUE = _FILLERS | frozenset(
    words.terms(
        "record recorded log logged entry entries diary journal occur occurred event go goes "
        "going went discussion chat chatted conversation memory thing anything something "
        "everything nothing stuff day date show list give make made summary summarize summarise "
        "overview los machte weisst tag jour chose choses cosa cosas dia"
    )
)


class Query(Struct, frozen=True):
    """A parsed query."""

    text: str
    terms: tuple[str, ...]  # distinct, in reading order
    spelled: Mapping[str, str]  # term to its folded word
    exact: tuple[tuple[str, ...], ...]  # quoted phrases and identifiers, as terms
    window: tuple[int, int] | None = None  # first and last day that it names, as ordinals
    anchor: AnchoredDays | None = None  # days named by an event
    only_days: bool = False  # whether it asks only what there was on those days


class _Days(Struct, frozen=True):
    """The days that a text names, and how its terms relate to them."""

    window: tuple[int, int] | None = None
    anchor: AnchoredDays | None = None
    spoken: frozenset[str] = frozenset()  # relative dates, which answers lack
    fillers: frozenset[str] = frozenset()
    only: bool = False


def parse(text: str, today: date | None = None) -> Query:
    """Parse a text; only what `words.query_part` keeps of it counts. Without `today` no days are
    recognised.
    """
    text = words.query_part(text)
    found = list(words.raw_words(text))
    terms = tuple(dict.fromkeys(words.terms(text)))[:MAX_TERMS]
    days = _days(text, today)
    topic = tuple(term for term in terms if term not in days.fillers)
    terms = tuple(term for term in topic if term not in days.spoken) or topic or terms
    quoted = [tuple(words.terms(m.group(1))) for m in _QUOTED.finditer(text)]
    identifiers = [tuple(words.terms(w)[:1]) for w in found[:MAX_TERMS] if words.is_identifier(w)]
    folded = {w: words.fold(words.bare(w)) for w in found[:MAX_TERMS]}
    return Query(
        text=text,
        terms=terms,
        spelled={term: plain for w, plain in folded.items() for term in words.terms(w)[:MAX_TERMS]},
        exact=tuple(dict.fromkeys(e for e in [*quoted, *identifiers] if e)),
        window=days.window,
        anchor=days.anchor,
        only_days=days.only and len(text) <= _HEAD,
    )


def _days(text: str, today: date | None) -> _Days:
    if today is None:
        return _Days()
    folded = words.fold(text[:_HEAD])
    found = temporal.find_days(folded, today)
    anchor = temporal.find_anchor(folded)
    if anchor is not None and any(
        one.start <= anchor.start and one.end > anchor.event_start for one in found
    ):
        anchor = None  # "the day before yesterday" names a day by itself
    whens = [(one.start, one.end) for one in found]
    spoken = [folded[one.start : one.end] for one in found if one.relative]
    window = None
    if anchor is not None:
        spoken.append(anchor.unit)
        event = _event_days(anchor, found, folded)
        if event is None:
            whens.append((anchor.start, anchor.end))
        else:
            window = temporal.beside(
                (event.first, event.last), anchor.unit, anchor.side, anchor.count
            )
            whens.append((anchor.start, event.end))
        found = [one for one in found if one.end <= anchor.start or one.start >= anchor.end]
        anchor = anchor if event is None else None
    if window is None and found:
        window = found[0].first, found[0].last
    if window is None and anchor is None:
        return _Days()
    when, rest = _split_spans(folded, whens)
    topic = frozenset(words.terms(rest))
    return _Days(
        window=None if window is None else (window[0].toordinal(), window[1].toordinal()),
        anchor=anchor,
        spoken=frozenset(words.terms(" ".join(spoken))),
        fillers=(topic & _FILLERS) - frozenset(words.terms(when)),
        only=topic <= _VAGUE and all(one.is_when for one in found),
    )


def _event_days(anchor: AnchoredDays, found: Sequence[NamedDays], folded: str) -> NamedDays | None:
    """Return the date that is itself the event, as in "the week of 3 May"; None if there is
    none.
    """
    for one in found:
        if anchor.start < one.start < anchor.end:
            before = folded[anchor.event_start : one.start]
            if before.strip() in {"", "the", "dem", "den", "le", "el"}:
                return one
    return None


def _split_spans(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Return the text inside the spans, and the text outside, each with blanks for the rest."""
    inside = [False] * len(text)
    for start, end in spans:
        inside[start:end] = [True] * (end - start)
    kept = (
        "".join(c if within is wanted else " " for c, within in zip(text, inside, strict=True))
        for wanted in (True, False)
    )
    return next(kept), next(kept)
