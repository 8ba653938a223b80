"""`words`: 800 words, of which the last 15 % begin the next chunk; texts that short stay whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentd.memory.index.chunking.piece import Lines, Piece

WORDS = 800
OVERLAP = 0.15
FEWEST = 50  # a last chunk that adds fewer words is part of the one before it

_WORD = re.compile(r"\S+")


def pieces(file: Lines, most: int = WORDS, overlap: float = OVERLAP) -> Iterator[Piece]:
    """The chunks of a text. None lies within another, and each ends where a word does."""
    words = [m.span() for m in _WORD.finditer(file.text)]
    if len(words) <= most:
        yield file.whole(0, len(file.lines))
        return
    step = max(1, most - int(most * overlap))
    for first in range(0, len(words), step):
        last = first + most
        if len(words) - last < min(FEWEST, most):
            last = len(words)
        yield file.stretch(words[first][0], words[last - 1][1])
        if last == len(words):
            return
