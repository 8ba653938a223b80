"""Reads and writes one fact as a line of markdown: the sentence, then a comment with the rest.
Pure.

    - The user's dog is called Rex. <!-- fact id=k3f9q2ma category=personal source=explicit … -->

Keys may be missing. Quoted values escape quotes and backslashes with a backslash; the fields of a
triple are separated by `|`. Neither sentence nor comment can end the comment early.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from agentd.core.fact import (
    Category,
    Fact,
    FactSource,
    FactStatus,
    Provenance,
    Triple,
)
from agentd.core.times import read_instant
from agentd.core.turn import SessionKey

MOST_CHARS = 4_096

_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_PAIR = re.compile(r'\s*([a-z]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?=\s|$)', re.ASCII)
_BARE = re.compile(r"[\w.:#@+/-]+", re.ASCII)
_OPENS, _CLOSES = re.compile(r"<(?=!--)"), re.compile(r"(?<=--)>")
_AMPERSAND = re.compile(r"&(?=(?:amp|lt|gt);)")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">"}
_BACKSLASHED = re.compile(r"\\(.)", re.DOTALL)
_FIELD = re.compile(r"(?:[^|\\]|\\.)*", re.DOTALL)
_UNWANTED = frozenset(
    "\ufffd\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_NOWHERE = Provenance()
_PROPOSED = str(FactStatus.PROPOSED)
_BROKEN = "its comment cannot be read"


class BadLine(ValueError):
    """The line is no fact. `str` says why, `cure` what to do about it."""

    def __init__(self, why: str, cure: str = "correct the line, or delete it") -> None:
        super().__init__(why)
        self.cure = cure


class PageEntry(Struct, frozen=True):
    """A fact as its line states it. Fields that the line lacks are None; `id` is "" for a line
    written by hand.
    """

    text: str
    id: str = ""
    category: Category | None = None
    source: FactSource | None = None
    confidence: float | None = None
    since: datetime | None = None
    noted: datetime | None = None
    until: datetime | None = None
    by: str = ""
    origin: Provenance = _NOWHERE
    triple: Triple | None = None
    is_proposed: bool = False
    replaces: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the line states everything a fact has."""
        needed = (self.category, self.source, self.confidence, self.since, self.noted)
        return bool(self.id) and None not in needed

    def status(self, now: datetime) -> FactStatus:
        """Return the status that the line implies at `now`."""
        if self.is_proposed:
            return FactStatus.PROPOSED
        if self.by:
            return FactStatus.SUPERSEDED
        return FactStatus.ENDED if self.until and self.until <= now else FactStatus.ACTIVE

    def fact(self, fact_id: str, now: datetime) -> Fact:
        """Return the fact, with defaults for missing fields."""
        source = self.source or FactSource.FILE
        since = self.since or self.noted or now
        return Fact(
            id=fact_id,
            text=self.text,
            category=self.category or Category.PERSONAL,
            source=source,
            confidence=source.confidence if self.confidence is None else self.confidence,
            valid_from=since,
            noted_at=self.noted or now,
            status=self.status(now),
            valid_to=self.until,
            superseded_by=self.by,
            origin=self.origin,
            triple=self.triple,
            replaces=self.replaces,
        )


def clean(text: str) -> str:
    """Return the text as one line with single spaces, without control characters, direction marks
    and replacement characters.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = (" " if c.isspace() else c for c in text if c.isspace() or not _is_unwanted(c))
    return " ".join("".join(kept).split())


def clean_triple(triple: Triple | None) -> Triple | None:
    """Return the triple with clean fields; None if one of them is empty."""
    if triple is None:
        return None
    fields = [clean(part) for part in (triple.subject, triple.relation, triple.value)]
    return Triple(*fields) if all(fields) else None


def bullet(fact: Fact) -> str:
    """Return the line of a fact, without a line end."""
    triple, origin = fact.triple, fact.origin
    pairs = {
        "id": fact.id,
        "category": str(fact.category),
        "source": str(fact.source),
        "confidence": repr(fact.confidence),
        "since": _stamp(fact.valid_from),
        "noted": _stamp(fact.noted_at),
        "until": _stamp(fact.valid_to) if fact.valid_to else "",
        "by": fact.superseded_by,
        "from": f"{origin.session}#{origin.seq}" if origin.session else "",
        "status": _PROPOSED if fact.status is FactStatus.PROPOSED else "",
        "replaces": ",".join(fact.replaces),
    }
    told = [f"{key}={_value(value)}" for key, value in pairs.items() if value]
    if triple is not None:
        parts = (triple.subject, triple.relation, triple.value)
        told.append(f"triple={_quote('|'.join(_backslash(part, '|') for part in parts))}")
    return f"- {_escape(fact.text)} <!-- fact {' '.join(told)} -->"


def tombstone(fact_id: str, at: datetime) -> str:
    """Return the line of a forgotten fact: only its id and the time."""
    return f"<!-- forgotten id={fact_id} at={_stamp(at)} -->"


def read_bullet(text: str, annotation: str | None) -> PageEntry:
    """Parse a bullet: its text, and the content of its comment after `fact`. Raises BadLine."""
    if "<!--" in text or "-->" in text:
        raise BadLine("it has a comment that is not agentd's", "take the comment out")
    words = clean(_plain(text))
    if not words:
        raise BadLine("it says nothing", "delete the line to forget the fact")
    if len(words) > MOST_CHARS:
        raise BadLine(f"it has more than {MOST_CHARS} characters", "split it into several lines")
    if annotation is None:
        return PageEntry(words)
    values = _pairs(annotation)
    fact_id = values.get("id", "")
    if not _ID.fullmatch(fact_id):
        raise BadLine("its comment names no id", "delete the comment to make it a new fact")
    try:
        return PageEntry(
            text=words,
            id=fact_id,
            category=Category(values["category"]) if "category" in values else None,
            source=FactSource(values["source"]) if "source" in values else None,
            confidence=_confidence(values["confidence"]) if "confidence" in values else None,
            since=read_instant(values["since"]) if "since" in values else None,
            noted=read_instant(values["noted"]) if "noted" in values else None,
            until=read_instant(values["until"]) if "until" in values else None,
            by=values.get("by", ""),
            origin=_origin(values["from"]) if "from" in values else _NOWHERE,
            triple=_triple(values["triple"]) if "triple" in values else None,
            is_proposed=values.get("status") == _PROPOSED,
            replaces=tuple(i for i in values.get("replaces", "").split(",") if _ID.fullmatch(i)),
        )
    except ValueError as error:
        raise BadLine(f"{_BROKEN}: {error}") from None


def read_tombstone(annotation: str) -> tuple[str, datetime]:
    """Parse the comment of a tombstone: the id and the time. Raises BadLine."""
    values = _pairs(annotation)
    if not _ID.fullmatch(values.get("id", "")):
        raise BadLine("it names no id")
    try:
        return values["id"], read_instant(values["at"])
    except (KeyError, ValueError):
        raise BadLine("it says no time") from None


def _pairs(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _PAIR.match(text, at)
        if found is None:
            raise BadLine(_BROKEN)
        key, value = found[1], found[2]
        if value.startswith('"'):
            value = _plain(value[1:-1])
            value = value if key == "triple" else _BACKSLASHED.sub(r"\1", value)
        if key in values:
            raise BadLine(f"{_BROKEN}: it says {key} twice")
        values[key] = value
        at = found.end()
    return values


def _confidence(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        msg = f"confidence {text} is not between 0 and 1"
        raise ValueError(msg)
    return value


def _origin(text: str) -> Provenance:
    session, _, seq = text.rpartition("#")
    return Provenance(SessionKey(session), int(seq)) if session else _NOWHERE


def _triple(text: str) -> Triple | None:
    fields = text.split("|") if "\\" not in text else list(_fields(text))
    if len(fields) != 3:
        msg = "a triple has three fields"
        raise ValueError(msg)
    return clean_triple(Triple(*fields))


def _fields(text: str) -> Iterator[str]:
    at = 0
    while at <= len(text) and (found := _FIELD.match(text, at)):
        yield _BACKSLASHED.sub(r"\1", found[0])
        at = found.end() + 1


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _value(text: str) -> str:
    return text if _BARE.fullmatch(text) and "--" not in text else _quote(_backslash(text, ""))


def _quote(text: str) -> str:
    return f'"{_escape(text)}"'


def _backslash(text: str, more: str) -> str:
    return "".join(f"\\{c}" if c in '\\"' or c in more else c for c in text)


def _escape(text: str) -> str:
    """Escape everything that could begin or end a comment; `_plain` reverses it."""
    return _CLOSES.sub("&gt;", _OPENS.sub("&lt;", _AMPERSAND.sub("&amp;", text)))


def _plain(text: str) -> str:
    return _ENTITY.sub(lambda found: _CHARACTERS[found[1]], text)


def _is_unwanted(character: str) -> bool:
    return character in _UNWANTED or unicodedata.category(character) in ("Cc", "Cs")
