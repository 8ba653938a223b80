"""What a chunk is found by: the words of the keyword retriever, the text that is embedded."""

from __future__ import annotations

from agentd.core.search import Chunk
from agentd.memory.index.search import words


def head_terms(chunk: Chunk) -> list[str]:
    """The terms of what stands above a chunk: its day, its speaker, its headings."""
    day = f"{chunk.date.isoformat()} {chunk.date:%d %B %A}" if chunk.date else ""
    return words.terms(f"{day} {_speaker(chunk)} {chunk.context}")


def embedded_text(chunk: Chunk) -> str:
    """What is embedded of a chunk: who speaks, the headings above it, its words. Not its date, which
    says nothing to a model.
    """
    head = ". ".join(part for part in (_speaker(chunk), chunk.context) if part)
    return f"{head}: {chunk.text}" if head else chunk.text


def _speaker(chunk: Chunk) -> str:
    """Who speaks, unless the text begins with the name, as that of imported messages does."""
    return "" if chunk.text.startswith(f"{chunk.speaker}: ") else chunk.speaker
