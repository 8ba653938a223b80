"""The paragraphs of a note: what is read, and masked, as one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

_BEGINS = re.compile(r"\s*(?:[-*+•–#>|]|\d{1,3}[.)]\s)")
_MOST = 20  # lines of one


class Hand(Enum):
    """Who wrote a line."""

    USER = auto()
    AGENT = auto()
    SHIPPED = auto()  # it came with agentd, for a new workspace


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of one author that belong together: a list's entry with what is below it, a heading, a few
    lines of prose. `line` is the first one, from 1 on; `start` and `end` are characters.
    """

    line: int
    start: int
    end: int
    hand: Hand

    @property
    def is_own(self) -> bool:
        """Whether agentd wrote it."""
        return self.hand is Hand.AGENT


def paragraphs(text: str, hands: Sequence[Hand]) -> Iterator[Paragraph]:
    """The paragraphs, in order. `hands` says for each line who wrote it."""
    first, begun, at = 0, 0, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if number > first and (
            not line.strip()
            or not lines[number - 1].strip()
            or _BEGINS.match(line)
            or hands[number] is not hands[number - 1]
            or number - first == _MOST
        ):
            yield Paragraph(first + 1, begun, at - 1, hands[first])
            first, begun = number, at
        at += len(line) + 1
    yield Paragraph(first + 1, begun, len(text), hands[first])
