"""Turns found chunks into hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentd.core.search import Chunk, Hit, Source

if TYPE_CHECKING:
    from agentd.memory.index.search.in_memory import Match


def hit_of(match: Match) -> Hit:
    """Return a match as a Hit."""
    return Hit(join_chunks(match.chunks), match.score, match.scores, match.superseded_by)


def join_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Join neighbouring chunks of one file, in reading order, into one chunk whose text is exactly
    its lines; for a transcript, what was said and by whom.
    """
    if chunks[0].source is Source.SESSIONS:
        return replace(_span(chunks), text="\n".join(chunk.shown for chunk in chunks), speaker="")
    lines: list[str] = []
    first = chunks[0].start_line
    for chunk in chunks:
        lines += [""] * (chunk.start_line - first - len(lines))  # gaps are blank lines
        own = chunk.text.split("\n")
        if len(lines) == chunk.start_line - first + 1 and own[0] != lines[-1]:
            lines[-1] += f" {own[0]}"  # the rest of a line that was split
        lines += own[first + len(lines) - chunk.start_line :]
    return replace(_span(chunks), text="\n".join(lines))


def _span(chunks: Sequence[Chunk]) -> Chunk:
    return replace(chunks[0], end_line=max(chunk.end_line for chunk in chunks))
