"""Pieces of memory that can be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Any, Literal

from agentd.core.turn import MAIN, Kind, SessionKey, kind_of

SHARED = ""  # the scope of what every session may find
OWNERS = str(MAIN)  # the scope of what the owner's sessions alone may find; others are session keys


class Source(StrEnum):
    """Where a piece of memory comes from."""

    NOTES = "notes"
    SESSIONS = "sessions"


@dataclass(frozen=True, slots=True)
class Audience:
    """Who searches: the owner finds everything, any other session what is shared and its own. What is
    not for an audience does not exist for it.
    """

    own: str | None  # the scope beside SHARED; None: every one there is

    def sees(self, scope: str) -> bool:
        """Whether what has this scope exists for the audience."""
        return self.own is None or scope in {SHARED, self.own}


OWNER = Audience(None)
PUBLIC = Audience(SHARED)


def scope_of(session: SessionKey) -> str:
    """The scope of what is said in a session."""
    return OWNERS if kind_of(session) is Kind.MAIN else str(session)


def audience_of(session: SessionKey, kind: Kind) -> Audience:
    """What a session may find when its turn is of this kind."""
    if kind is Kind.MAIN:
        return OWNER
    scope = scope_of(session)
    return PUBLIC if scope == OWNERS else Audience(scope)  # the kind of the turn is what counts


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of lines of one file or transcript. Lines count from 1, both ends included."""

    path: str  # `memory/2026-11-21.md`, `@work/MEMORY.md`, `sessions/main.jsonl`
    start_line: int
    end_line: int
    text: str
    source: Source
    scope: str  # SHARED, OWNERS, or the one session beside the owner's that may find it
    date: date | None = None
    speaker: str = ""  # a name or a role; "" where nobody speaks
    context: str = ""  # the headings above it, searched with it but not shown
    importance: float = 1.0  # 0..1: how much its source is to be trusted

    def moved(self, by: int) -> Chunk:
        """The same, so many lines further down."""
        return replace(self, start_line=self.start_line + by, end_line=self.end_line + by)

    @property
    def shown(self) -> str:
        """The text as a reader is shown it: words of a transcript stand behind who said them."""
        if self.source is not Source.SESSIONS or not self.speaker:
            return self.text
        is_named = self.text.startswith(f"{self.speaker}: ")
        return self.text if is_named else f"[{self.speaker}] {self.text}"


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found, with every partial score."""

    chunk: Chunk
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)
    newer: str = ""  # `path:line` of a hit that says a newer value of the same thing

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
            "newer": self.newer,
        }


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search. `reason` says why it is empty, degraded or most likely no answer: ""
    when all is well, else one of EmptyReason, or of what search had to do without: `indexing` (not
    all is indexed yet), `warming` (keywords alone, the first search after a start), `vectors_missing`
    (not all is embedded yet), `embedder_down`, `embedder_slow`. `confidence`, 0..1, is how likely one
    of the hits answers; it says nothing where there are none.
    """

    hits: tuple[Hit, ...]
    reason: str = ""
    confidence: float = 1.0

    def as_json(self) -> dict[str, Any]:
        """The shape of `agentd memory search`."""
        return {
            "results": [hit.as_json() for hit in self.hits],
            "confidence": round(self.confidence, 4) if self.hits else 0.0,
            "reason": self.reason,
        }


IndexWord = Literal["ready", "indexing", "rebuilding", "embedding"]


@dataclass(frozen=True, slots=True)
class IndexState:
    """A line about the index for `status`."""

    files: int
    chunks: int
    pending: int
    state: IndexWord
    embedder: str = "none"  # the model whose vectors answer
    vectors: int = 0  # chunks without one of the best model, as far as they are being made
    reason: str = ""  # the code of what searches have to do without at this moment
    nbytes: int = 0  # of what is held in memory: texts, words, vectors

    def as_json(self) -> dict[str, Any]:
        """The index in `status` and `memory status`."""
        return {
            "files": self.files,
            "chunks": self.chunks,
            "pending": self.pending,
            "vectors_missing": self.vectors,
            "embedder": self.embedder,
            "state": self.state,
            "reason": self.reason,
            "bytes": self.nbytes,
        }
