"""The texts by which a chunk is found: terms for the keyword retriever, the text to embed."""

from __future__ import annotations

from agentd.core.search import Chunk
from agentd.memory.index.search import words


def head_terms(chunk: Chunk) -> list[str]:
    """Return the terms of a chunk's head: its day, speaker and headings."""
    day = f"{chunk.date.isoformat()} {chunk.date:%d %B %A}" if chunk.date else ""
    return words.terms(f"{day} {_speaker(chunk)} {chunk.context}")


def embedded_text(chunk: Chunk) -> str:
    """Return the text of a chunk that is embedded: speaker, headings, words. Not its date, which
    means nothing to a model.
    """
    head = ". ".join(part for part in (_speaker(chunk), chunk.context) if part)
    return f"{head}: {chunk.text}" if head else chunk.text


def _speaker(chunk: Chunk) -> str:
    """Return the speaker, or "" if the text begins with the name, as that of imported messages
    does.
    """
    return "" if chunk.text.startswith(f"{chunk.speaker}: ") else chunk.speaker
