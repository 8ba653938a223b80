"""The page of facts: each fact is a piece of its own, without its comment, dated by when it came to be
so. What is no longer so says until when, and counts little; marks of what was forgotten say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from agentd.core.times import date_in
from agentd.memory.index.chunking.paragraphs import HeadingStanding
from agentd.memory.index.chunking.piece import Lines, Piece

EARLIER = 0.3  # the importance of what is no longer so

_BULLET = re.compile(r"[-*+]\s+(.*)")
_ANNOTATION = re.compile(r"<!--\s*+fact\b")
_SINCE, _UNTIL = re.compile(r"\bsince=(\S+)"), re.compile(r"\buntil=(\S+)")
_COMMENT = re.compile(r"\s*(?:<!--.*?-->\s*)?")
_DAY = len("2026-01-31")
_HEADING = re.compile(r"#{1,6}\s")
_ENTITY = re.compile("&(lt|gt|amp);")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}


def pieces(file: Lines) -> Iterator[Piece]:
    """The pieces of the page. What the user wrote beside the facts is found by line."""
    for number, line in enumerate(file.lines):
        if _COMMENT.fullmatch(line) or _HEADING.match(line):
            continue
        bullet = _BULLET.fullmatch(line)
        if bullet is None:
            yield file.whole(number, number + 1)
            continue
        said, annotation = _apart(bullet[1].rstrip())
        text = _ENTITY.sub(lambda found: _CHARACTERS[found[1]], said)
        since, until = (_day(mark, annotation) for mark in (_SINCE, _UNTIL))
        piece = Piece(number, number + 1, text, day=since)
        if until is not None:
            piece = replace(piece, text=f"Until {until}: {text}", importance=EARLIER)
        yield piece


def cut(file: Lines) -> tuple[Sequence[Piece], HeadingStanding | None]:
    """The pieces, and the last fact before the heading that follows facts: behind it a new one is written.
    No line depends on those above it.
    """
    last = None
    for number, line in enumerate(file.lines):
        if _BULLET.fullmatch(line):
            last = number
        elif last is not None and _HEADING.match(line):
            break
    return list(pieces(file)), None if last is None else HeadingStanding(last, last)


def _apart(said: str) -> tuple[str, str]:
    """The words of a line, and what the annotation behind them says."""
    found = _ANNOTATION.search(said) if said.endswith("-->") else None
    return (said[: found.start()].rstrip(), said[found.end() : -3]) if found else (said, "")


def _day(mark: re.Pattern[str], annotation: str) -> date | None:
    found = mark.search(annotation)
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1][:_DAY])  # as it is written; by hand it may be otherwise
    except ValueError:
        return date_in(found[1])
