"""The page of facts cut by line: one piece a fact, without its annotation, dated by `since`.

A fact with `until` is prefixed with that day and has the importance EARLIER. Headings, blank lines
and lines with nothing but a comment (the marks of forgotten facts) yield no piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from msgspec.structs import replace

from agentd.core.times import date_in
from agentd.memory.index.chunking.paragraphs import HeadingStanding
from agentd.memory.index.chunking.piece import Lines, Piece

EARLIER = 0.3  # importance of a fact that has ended

_BULLET = re.compile(r"[-*+]\s+(.*)")
_ANNOTATION = re.compile(r"<!--\s*+fact\b")
_SINCE, _UNTIL = re.compile(r"\bsince=(\S+)"), re.compile(r"\buntil=(\S+)")
_COMMENT = re.compile(r"\s*(?:<!--.*?-->\s*)?")
_DAY = len("2026-01-31")
_HEADING = re.compile(r"#{1,6}\s")
_ENTITY = re.compile("&(lt|gt|amp);")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}


def pieces(file: Lines) -> Iterator[Piece]:
    """Yield a piece for each fact, and for each other line that the user wrote on the page."""
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
    """Return all pieces, and the last fact before the next heading, as the place after which a new
    fact is inserted; None for a page without facts. No piece depends on another line.
    """
    last = None
    for number, line in enumerate(file.lines):
        if _BULLET.fullmatch(line):
            last = number
        elif last is not None and _HEADING.match(line):
            break
    return list(pieces(file)), None if last is None else HeadingStanding(last, last)


def _apart(said: str) -> tuple[str, str]:
    """Split a fact's line into its text and the content of the annotation at its end ("" without
    one).
    """
    found = _ANNOTATION.search(said) if said.endswith("-->") else None
    return (said[: found.start()].rstrip(), said[found.end() : -3]) if found else (said, "")


def _day(mark: re.Pattern[str], annotation: str) -> date | None:
    found = mark.search(annotation)
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1][:_DAY])  # the usual form; by hand it may differ
    except ValueError:
        return date_in(found[1])
