"""Which lines of memory still hold. Pure.

Of a thing that has one value at a time the page of facts says the present one: what a conversation
or an older note says otherwise is no answer any more, nor is what the page itself says of earlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agentd.domain.fact import Triple
from agentd.providers.offline import words
from agentd.providers.offline.hits import Line
from agentd.providers.offline.sentences import order, without_order
from agentd.statements.claims import USER, claims, triple_of
from agentd.statements.normal import normalised
from agentd.statements.relations import canonical, is_functional, slot

_PAST = re.compile(
    r"\b(?:before|earlier|previous(?:ly)?|former(?:ly)?|used to|back then|(?<!how )old|früher|vorher"
    r"|damals)\b",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"Until \d{4}-\d\d-\d\d: ")


def without_past(question: str) -> str:
    """The question without the words that ask for what was so before; the same if there are none."""
    return _PAST.sub("", question)


def still_held(question: str, lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines without those that no longer hold, or say again what a fact says. For a question
    about the past: what no longer holds, where the page of facts tells it.
    """
    past = [line for line in lines if is_past(line)]
    if _PAST.search(question):
        return tuple(past or lines)
    said = [_UNTIL.sub("", line.text) for line in past]
    gone = {words.normal(text) for text in said}
    ended = {pair for text in said for pair in _values(text)}
    now = [line for line in lines if line.is_fact and not is_past(line)]
    present = {where: (what, line.date) for line in now for where, what in _values(line.text)}
    others = [line for line in lines if not line.is_fact]
    if past or present:
        others = [line for line in others if not _is_outdated(line, gone, ended, present)]
    return (*now, *others)


def later_said(fact: str, heard: Sequence[str]) -> str:
    """What the user last said of the same thing, if it is otherwise and was not asked to be kept."""
    wanted = dict(_values(fact))
    for text in reversed(heard):
        said = {where: what for where, what in _values(text) if where in wanted}
        if said:
            is_same = all(wanted[where] == what for where, what in said.items())
            return "" if is_same or order(text) is not None else text.strip()
    return ""


def says_of_user(text: str, relations: Sequence[str]) -> bool:
    """Whether the text says the user's value of one of these, and not only which it no longer is."""
    if not relations:
        return False
    wanted = {(relation, False) for relation in relations}
    triples = _triples(_UNTIL.sub("", text))
    return any(t.subject == USER and canonical(t.relation) in wanted for t in triples)


def is_past(line: Line) -> bool:
    """Whether the page of facts says so of an earlier time."""
    return line.is_fact and _UNTIL.match(line.text) is not None


def _is_outdated(
    line: Line,
    gone: set[str],
    ended: set[tuple[str, str]],
    present: dict[str, tuple[str, str]],
) -> bool:
    if words.normal(without_order(line.text)) in gone:
        return True
    for where, what in _values(line.text):
        if where in present:
            value, since = present[where]
            is_newer = line.is_note and bool(since) and line.date > since
            if value == what or not is_newer:
                return True
        elif (where, what) in ended:
            return True
    return False


def _values(text: str) -> Iterator[tuple[str, str]]:
    """What the text says of things that have one value at a time: the thing, and its value."""
    for triple in _triples(text):
        if is_functional(triple.relation):
            yield slot(triple), normalised(triple.value)


def _triples(text: str) -> Iterator[Triple]:
    plain = without_order(text)
    triples = [claim.triple for claim in claims(plain)] or [triple_of(plain)]
    return (triple for triple in triples if triple is not None)
