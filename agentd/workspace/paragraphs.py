"""The paragraphs of a note: what is read, and masked, as one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_BEGINS = re.compile(r"\s*(?:[-*+•–#>|]|\d{1,3}[.)]\s)")
_MOST = 20  # lines of one


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of one author that belong together: a list's entry with what is below it, a heading, a few
    lines of prose. `line` is the first one, from 1 on; `start` and `end` are characters.
    """

    line: int
    start: int
    end: int
    is_own: bool  # agentd wrote it


def paragraphs(text: str, own: Sequence[bool]) -> Iterator[Paragraph]:
    """The paragraphs, in order. `own` says for each line whether agentd wrote it."""
    first, begun, at = 0, 0, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if number > first and (
            not line.strip()
            or not lines[number - 1].strip()
            or _BEGINS.match(line)
            or own[number] != own[number - 1]
            or number - first == _MOST
        ):
            yield Paragraph(first + 1, begun, at - 1, own[first])
            first, begun = number, at
        at += len(line) + 1
    yield Paragraph(first + 1, begun, len(text), own[first])
