"""Read the hand-written pieces: what was noted, what was said, and what is asked about it later.

One record a line, told by its first word (dates are YYMMDD; `#name` anchors a line for questions):

    n 260311 #roof text             a line of memory/2026-03-11.md
    f people/joris.md #tea text     a line of memory/people/joris.md (or of MEMORY.md, USER.md)
    c 260311 roof                   a talk begins; its messages follow
    u #said text / a text           the person / the agent says it
    t shell: text                   the agent ran a tool, and this came back
    ? paraphrase roof : question    any of `a,b` answers; `a+b` asks for both; `< old,older` are stale;
                                    `@ 261112` is the day of asking
    ~ text                          the last question was asked before, and nobody knew
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

_ANCHOR = re.compile(r"#([a-z0-9-]+) (.*)")
_QUESTION = re.compile(
    r"(?P<type>\w+) (?P<gold>[a-z0-9,+-]+)(?: < (?P<stale>[a-z0-9,-]+))?(?: @ (?P<now>\d{6}))? : "
    r"(?P<query>.*)"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One written line, and the name by which questions point at it."""

    text: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said. `who` is `u`, `a`, or `t` for what a tool gave back."""

    who: str
    line: Line


@dataclass(slots=True)
class Talk:
    """Messages that belong together, on a day."""

    day: date
    name: str
    messages: list[Message] = field(default_factory=list)


@dataclass(slots=True)
class Question:
    """A question with the anchors that answer it; `-` stands for none."""

    type: str
    query: str
    gold: tuple[str, ...]
    every: bool
    stale: tuple[str, ...]
    now: date | None
    echoes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Pieces:
    """Everything that was written by hand about facts."""

    notes: dict[date, list[Line]] = field(default_factory=dict)
    files: dict[str, list[Line]] = field(default_factory=dict)
    talks: list[Talk] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def read_facts(paths: Iterable[Path]) -> Pieces:
    """The records of these files, in their order. Raises ValueError with the file and line of a bad
    one.
    """
    pieces = Pieces()
    for path in paths:
        for number, row in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if row.strip() and not row.startswith("%"):
                try:
                    _take(pieces, row)
                except (ValueError, IndexError) as error:
                    raise ValueError(f"{path.name}:{number}: {row[:60]!r}: {error}") from error
    return pieces


def read_blocks(path: Path) -> list[list[Message]]:
    """Small talk: blocks of messages with a blank line between them."""
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    return [
        [Message(row[0], Line(row[2:])) for row in block.splitlines() if row and row[0] != "%"]
        for block in blocks
        if block.strip()
    ]


def read_rows(path: Path) -> list[str]:
    """The lines of a file of one-liners."""
    rows = path.read_text(encoding="utf-8").splitlines()
    return [row for row in rows if row.strip() and not row.startswith("%")]


def read_lists(path: Path) -> dict[str, list[str]]:
    """`name = a; b; c`: what may stand in a slot of a piece of filler."""
    pairs: Iterator[list[str]] = (row.split(" = ", 1) for row in read_rows(path))
    return {name: values.split("; ") for name, values in pairs}


def _take(pieces: Pieces, row: str) -> None:
    kind, rest = row[0], row[2:]
    if kind == "n":
        pieces.notes.setdefault(_day(rest[:6]), []).append(_line(rest[7:]))
    elif kind == "f":
        name, text = rest.split(" ", 1)
        pieces.files.setdefault(name, []).append(_line(text))
    elif kind == "c":
        pieces.talks.append(Talk(_day(rest[:6]), rest[7:]))
    elif kind in "uat":
        pieces.talks[-1].messages.append(Message(kind, _line(rest)))
    elif kind == "?":
        pieces.questions.append(_question(rest))
    elif kind == "~":
        pieces.questions[-1].echoes.append(rest)
    else:
        raise ValueError("no such kind of record")


def _line(text: str) -> Line:
    found = _ANCHOR.fullmatch(text)
    return Line(found[2], found[1]) if found else Line(text)


def _question(text: str) -> Question:
    found = _QUESTION.fullmatch(text)
    if found is None:
        raise ValueError("not a question")
    gold = found["gold"]
    return Question(
        type=found["type"],
        query=found["query"],
        gold=() if gold == "-" else tuple(re.split(r"[,+]", gold)),
        every="+" in gold,
        stale=tuple((found["stale"] or "").split(",")) if found["stale"] else (),
        now=_day(found["now"]) if found["now"] else None,
    )


def _day(text: str) -> date:
    return datetime.strptime(text, "%y%m%d").date()
