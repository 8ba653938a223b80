"""`turns`: a chunk is one message of a transcript, or a part of a long one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentd.core.transcript import Row, RowRole
from agentd.memory.index.chunking.piece import Piece, cuts

TOKENS = 200
IDENTITY = "turns-1"  # transcripts that were cut with another value are cut again

_ROLES = frozenset({RowRole.USER, RowRole.ASSISTANT})
# The author's name before an imported message. Live messages may begin like that by chance.
_NAMED = re.compile(r"([^\W\d_][^\s:\[\]]{0,20}(?: [^\W\d_][^\s:\[\]]{0,20}){0,2}): (?=\S)")


def pieces(row: Row, most: int = TOKENS) -> Iterator[Piece]:
    """Yield the pieces of a message; none for rows of agentd itself and for results of tools."""
    if not row.role.is_spoken:
        return
    text = row.text.strip().replace("\n[", "\n [")  # no line looks like another's message
    speaker = _speaker(row, text)
    for begin, end in cuts(text, most):
        yield Piece(row.seq - 1, row.seq, text[begin:end], speaker)


def _speaker(row: Row, text: str) -> str:
    named = _NAMED.match(text) if row.turn_id is None else None
    role = str(row.role)
    if named is None or named[1].casefold() in _ROLES:
        return role
    return named[1]
