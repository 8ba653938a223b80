"""Sentences that say several things of one relative: “my sister is called Klara and lives in Bern”."""

from __future__ import annotations

import re

_CAPITAL = r"(?-i:[A-ZÀ-Þ])[\w'-]+"
_NAME = rf"{_CAPITAL}(?: {_CAPITAL}){{0,2}}"
_NAMING = r"(?: is (?:called|named)|'s (?:called|named)|'s name is| hei(?:ß|ss)t)"
_DOING = r"(?:lives|works|is (?:now )?(?:living|working)|wohnt|lebt|arbeitet)"
_STILL = r"(?:(?:now|currently|still|also|jetzt|derzeit|auch) )?"
_SUBJECT = re.compile(
    rf"(?P<who>(?:my|our|meine?|unse?re?|unser) [^\W\d_][\w-]*(?: [a-z][\w-]*){{0,2}}?)(?:,? (?P<name>{_NAME}),?)?"
    rf"(?P<says>{_NAMING} | {_STILL}{_DOING} )(?=\S)",
    re.IGNORECASE,
)
_GAP = re.compile(
    rf"(?:,|,? (?:and|und)) (?={_STILL}(?:is (?:called|named)|hei(?:ß|ss)t|{_DOING}) )",
    re.IGNORECASE,
)
_CALLED = re.compile(
    rf"(?:is (?:called|named)|'s (?:called|named)|'s name is|hei(?:ß|ss)t) (?P<name>{_NAME})[.!]*",
    re.IGNORECASE,
)


def each_told(sentence: str) -> tuple[str, ...]:
    """A sentence for each thing that is said, each with the subject of all, and with its name where one
    is given; () where there is only one or no subject for all.
    """
    subject = _SUBJECT.match(sentence)
    if subject is None:
        return ()
    said = [part.strip() for part in _GAP.split(sentence[subject.start("says") :])]
    if len(said) < 2 or (subject["name"] and any(map(_CALLED.fullmatch, said))):
        return ()
    names = [match["name"] for part in said if (match := _CALLED.fullmatch(part))]
    if len(names) > 1:
        return ()
    name = subject["name"] or "".join(names)
    return tuple(_with_subject(part, subject["who"], name) for part in said)


def _with_subject(part: str, who: str, name: str) -> str:
    if not _CALLED.fullmatch(part):
        return f"{who} {name} {part}" if name else f"{who} {part}"
    return f"{who}{part}" if part.startswith("'") else f"{who} {part}"
