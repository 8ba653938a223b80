"""`lines`: a chunk begins at each heading of the first two levels, and after 20 lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentd.memory.index.chunking.piece import Lines, Piece

LINES = 20

_HEADING = re.compile(r"#{1,2}\s")


def pieces(file: Lines, most: int = LINES) -> Iterator[Piece]:
    """Yield the chunks of a markdown file, each of at most `most` lines."""
    first = 0
    for number, line in enumerate(file.lines):
        if number > first and (number - first == most or _HEADING.match(line)):
            yield file.whole(first, number)
            first = number
    yield file.whole(first, len(file.lines))
