"""`turns`: one message of a transcript, or the pieces of a long one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentd.core.transcript import Row, RowRole
from agentd.memory.index.chunking.piece import Piece, cuts

TOKENS = 200
IDENTITY = "turns-1"  # transcripts that were cut in another way are cut again

_ROLES = frozenset({RowRole.USER, RowRole.ASSISTANT})
# An imported message with its author's name before it. Live ones begin as their author likes.
_NAMED = re.compile(r"([^\W\d_][^\s:\[\]]{0,20}(?: [^\W\d_][^\s:\[\]]{0,20}){0,2}): (?=\S)")


def pieces(row: Row, most: int = TOKENS) -> Iterator[Piece]:
    """What was said in a row; nothing for rows of the daemon's own and for results of tools."""
    if not row.role.is_spoken:
        return
    text = row.text.strip().replace("\n[", "\n [")  # no line of it looks like another speaker's
    speaker = _speaker(row, text)
    for begin, end in cuts(text, most):
        yield Piece(row.seq - 1, row.seq, text[begin:end], speaker)


def _speaker(row: Row, text: str) -> str:
    named = _NAMED.match(text) if row.turn_id is None else None
    role = str(row.role)
    if named is None or named[1].casefold() in _ROLES:
        return role
    return named[1]
