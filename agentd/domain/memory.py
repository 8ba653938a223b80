"""Pieces of memory that can be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any


class Source(StrEnum):
    """Where a piece of memory comes from."""

    NOTES = "notes"
    SESSIONS = "sessions"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of lines of one file or transcript. Lines count from 1, both ends included."""

    path: str  # `memory/2026-11-21.md`, `@work/MEMORY.md`, `sessions/main.jsonl`
    start_line: int
    end_line: int
    text: str
    source: Source
    owner_only: bool  # may be shown to the owner's sessions alone
    date: date | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found, with every partial score."""

    chunk: Chunk
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The shape of `agentd memory search`."""
        c = self.chunk
        return {
            "path": c.path,
            "start_line": c.start_line,
            "end_line": c.end_line,
            "text": c.text,
            "score": self.score,
            "source": str(c.source),
            "date": c.date.isoformat() if c.date else None,
            "scores": dict(self.scores),
        }


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search. `reason` says why it is empty or degraded: "" when all is well,
    else `nothing_indexed`, `no_match`, `empty_query`, `indexing`.
    """

    hits: tuple[Hit, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IndexState:
    """A line about the index for `status`."""

    files: int
    chunks: int
    pending: int
    state: str  # "ready", "indexing", "rebuilding"
    embedder: str = "none"
