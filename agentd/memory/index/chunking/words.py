"""`words`: 800 words; the last 15 % of a chunk are repeated in the next. A shorter text stays
whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentd.memory.index.chunking.piece import Lines, Piece

WORDS = 800
OVERLAP = 0.15
FEWEST = 50  # a last chunk that adds fewer words is merged into the one before

_WORD = re.compile(r"\S+")


def pieces(file: Lines, most: int = WORDS, overlap: float = OVERLAP) -> Iterator[Piece]:
    """Yield the chunks of a text. No chunk lies within another, and each ends at the end of a
    word.
    """
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
