"""Which facts have earned a line in MEMORY.md or USER.md, and how the file would look then. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from agentd.core.fact import NO_SESSION, Category, Evidence, Fact, FactSource, FactStatus
from agentd.core.text import sentences
from agentd.core.turn import SessionKey
from agentd.memory.facts.known import comparable

MEMORY, USER = "MEMORY.md", "USER.md"

_PATHS = {
    Category.PERSONAL: USER,
    Category.PREFERENCE: USER,
    Category.INSTRUCTION: USER,
    Category.PROJECT: MEMORY,
    Category.DECISION: MEMORY,
    Category.OUTCOME: MEMORY,
}
_TIMES = 3
_TIMES_ASKED = 2  # where the user asked for it to be remembered
_DISTINCT = 2  # days, or sessions
_LONGEST = 512  # characters of a line
_MARK = re.compile(
    r"\s*(?:[-*+>]\s+|#+\s+|\d+[.)]\s+)*(?:\[[ xX]\]\s+)?"
)  # before a line's own words


@dataclass(frozen=True, slots=True)
class Sayings:
    """How often a fact was said, when first and last, and in which conversations."""

    times: int
    first: datetime
    last: datetime
    sessions: tuple[SessionKey, ...]

    def as_json(self) -> dict[str, Any]:
        """The shape in answers."""
        return {
            "times": self.times,
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "sessions": list(self.sessions),
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """A line that a file should have: in the place of that of the fact `instead_of`, or at its end.
    Where the file says it already, only the old line is to go.
    """

    fact: Fact
    path: str
    sayings: Sayings
    instead_of: Fact | None = None
    is_said: bool = False


def path_of(fact: Fact) -> str:
    """The file for facts of this kind."""
    return _PATHS[fact.category]


def line_of(fact: Fact) -> str:
    """The fact as a line of a file."""
    return f"- {' '.join(fact.text.split())}"


def sayings_of(evidence: Sequence[Evidence], fact: Fact) -> Sayings:
    """What is known of the times it was said. What was said at one moment was said once, however many
    copies of the conversation there are, or were.
    """
    said: dict[datetime, SessionKey] = {}
    for one in evidence:
        if not one.is_context and said.get(one.at, NO_SESSION) == NO_SESSION:
            said[one.at] = one.session
    times = list(said) or [fact.noted_at]
    keys = dict.fromkeys(session for session in said.values() if session != NO_SESSION)
    return Sayings(len(times), min(times), max(times), tuple(keys))


def is_earned(fact: Fact, sayings: Sayings, days: int) -> bool:
    """Whether a fact was said often enough, and not all at once: on so many days, or in so many sessions."""
    if not fact.is_active or len(line_of(fact)) > _LONGEST:
        return False
    if fact.source is FactSource.EXPLICIT and sayings.times >= _TIMES_ASKED:
        return True
    return sayings.times >= _TIMES and max(days, len(sayings.sessions)) >= _DISTINCT


def days_of(evidence: Sequence[Evidence], zone: tzinfo) -> int:
    """On how many days it was said."""
    return len({one.at.astimezone(zone).date() for one in evidence if not one.is_context})


def says(text: str, fact: Fact) -> bool:
    """Whether a line of the text, or a sentence in one, is the fact's sentence."""
    wanted = comparable(fact.text)
    lines = (line[found.end() :] for line in text.splitlines() if (found := _MARK.match(line)))
    said = (one for line in lines for one in (line, *sentences(line)))
    return any(comparable(one) == wanted for one in said)


def outdated(facts: Mapping[str, Fact], text: str) -> tuple[tuple[Fact, Fact], ...]:
    """Facts whose very lines stand in the text though they no longer hold, each with the one that
    holds instead.
    """
    lines = {line.strip() for line in text.splitlines()}
    olds = [f for f in facts.values() if f.status is FactStatus.SUPERSEDED and line_of(f) in lines]
    found = ((old, _current(old, facts)) for old in olds)
    return tuple((old, new) for old, new in found if new is not None)


def _current(fact: Fact, facts: Mapping[str, Fact]) -> Fact | None:
    passed: set[str] = set()
    one: Fact | None = fact
    while one is not None and one.status is FactStatus.SUPERSEDED and one.id not in passed:
        passed.add(one.id)
        one = facts.get(one.superseded_by)
    return one if one is not None and one.is_active else None


def rewritten(text: str, wish: Wish) -> str:
    """The file as it would be."""
    if wish.instead_of is None:
        end = "\r\n" if "\r\n" in text else "\n"
        head = end if text and not text.endswith("\n") else ""
        return f"{text}{head}{line_of(wish.fact)}{end}"
    old, new = line_of(wish.instead_of), line_of(wish.fact)
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.strip() != old:
            lines.append(line)
        elif not wish.is_said:
            lines.append(line.replace(old, new, 1))
    return "".join(lines)


def diff(path: str, before: str, after: str) -> str:
    """The change as a unified diff. A last line without an end is marked."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    )
