"""Pieces of memory that can be found, what the index keeps of them, how a search is to be done, and what it ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar

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


MOVES = "moves"  # in what a ChunkStore keeps by name: how often chunks have moved to other lines

Piece_co = TypeVar("Piece_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Patch(Generic[Piece_co]):
    """Lines of a file that are others now: those from `first` up to but not including `end` have become
    `count` lines. `pieces` is all that begins in these, with the lines that it has in the end.
    """

    first: int
    end: int
    count: int
    pieces: tuple[Piece_co, ...]

    @property
    def by(self) -> int:
        """How far down what stands behind moves."""
        return self.count - (self.end - self.first)


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk as it is indexed."""

    chunk: Chunk
    terms: str  # the words to find it by, folded, with a space between them
    digest: bytes  # of the text to embed: equal texts share a vector
    traits: bytes = b""  # what else ranking asks of the text; empty when that is not known yet


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is read back. Ids grow; a chunk that changed has another one."""

    id: int
    chunk: Chunk
    terms: str = ""
    traits: bytes = b""


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk whose text has no vector."""

    id: int
    digest: bytes
    chunk: Chunk


class Fusion(StrEnum):
    """How the scores of the keyword retriever and of the vector retriever become one."""

    RRF = "rrf"  # by ranks alone
    WEIGHTED = "weighted"  # by scores scaled per query
    STRUCTURED = "structured"  # by scores and by what stands around a unit


class EmptyReason(StrEnum):
    """Why a search found nothing, or not what it looked for."""

    NOTHING_INDEXED = "nothing_indexed"
    EMPTY_QUERY = "empty_query"
    NO_MATCH = "no_match"
    BELOW_THRESHOLD = "below_threshold"
    NOTHING_FITS = "nothing_fits"  # there are hits, but most likely none that answers
    BUDGET = "budget"  # the best hit does not fit `max_tokens`; shorter ones may
    SCOPE = "scope"  # what was asked for is not for this kind of session, whatever there is


class Lack(StrEnum):
    """What a search had to do without, the heaviest first."""

    WARMING = "warming"  # keywords alone: the first search after a start
    INDEXING = "indexing"  # what changed last is not indexed yet
    EMBEDDER_DOWN = "embedder_down"
    EMBEDDER_SLOW = "embedder_slow"
    VECTORS_MISSING = "vectors_missing"  # not all is embedded yet


_ON_THE_QUERY = frozenset({EmptyReason.EMPTY_QUERY, EmptyReason.BUDGET, EmptyReason.SCOPE})


def heavier(reason: str, lack: Lack) -> str:
    """Which of the two an answer names: `reason` when the query itself is why it is empty, else the
    lack that tells more of what may be missing.
    """
    if reason in _ON_THE_QUERY:
        return reason
    order = [str(each) for each in Lack]
    return min(reason, str(lack), key=lambda r: order.index(r) if r in order else len(order))


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is looked for. None leaves a choice to the settings."""

    text: str  # any string
    limit: int = 5
    sources: frozenset[Source] | None = None  # None: all that the reader may search
    max_tokens: int | None = None  # of all hits together
    min_score: float | None = None  # 0..1
    recency: bool | None = None  # whether age weighs on the scores
    half_life_days: float | None = None
    fusion: Fusion | None = None
    queries: tuple[str, ...] = ()  # the same in other words or languages; any strings
    waits: bool = True  # for the index to be loaded after a start; else words answer until then

    @property
    def phrasings(self) -> tuple[str, ...]:
        """Every way in which it is asked."""
        return (self.text, *self.queries)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """One search's settings; every stage of the pipeline can be switched off here."""

    limit: int = 10
    max_tokens: int | None = None  # of all hits together
    min_score: float = 0.0  # on the calibrated scale 0..1
    sources: frozenset[Source] | None = None  # None: all of them
    today: date | None = None  # what "yesterday" and ages count from; None: no date is used

    fusion: Fusion = Fusion.STRUCTURED
    gate: bool = True  # each retriever is trusted as far as this query lets it
    vector_weight: float = 0.7  # these two of `weighted` alone
    text_weight: float = 0.3

    recency: bool = True
    half_life_days: float = 30.0
    recency_floor: float = 0.9  # what is left of the score of the oldest
    importance: bool = True
    mmr: bool = False
    mmr_lambda: float = 0.7
    least_confidence: float = 0.02  # 0..1: below it nothing is said to fit
    newest_first: bool = True  # among hits that say different values of the same thing
    chatter: float = 0.8  # at most that share of the first hits is of transcripts; 1: all may be
    join: bool = True  # hits that stand next to each other become one


@dataclass(frozen=True, slots=True)
class Ranked:
    """One hit: slots of one file in reading order, a score of 0..1, and what it is made of."""

    slots: tuple[int, ...]
    score: float
    tokens: int
    scores: Mapping[str, float] = field(default_factory=dict)
    superseded_by: int | None = None  # a slot that says a newer value of the same thing


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer to a search. `reason` is set when it is empty; `confidence`, 0..1, is how likely one
    of the hits answers; `newest_leads` tells whether for such a query what is newer stands first.
    """

    hits: tuple[Ranked, ...]
    reason: EmptyReason | None = None
    confidence: float = 1.0
    newest_leads: bool = False

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
