"""Values of search: chunks and their index entries, queries, options, and ranked answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.turn import MAIN, SessionKey, SessionKind, kind_of

SHARED = ""  # the scope of chunks that every session may find
OWNERS = str(MAIN)  # scope of what only the owner's sessions may find; others are session keys


class Source(StrEnum):
    """The kind of source a chunk comes from."""

    NOTES = "notes"
    SESSIONS = "sessions"


class Audience(Struct, frozen=True):
    """The searching side: the owner finds everything, any other session finds shared chunks and its
    own. A chunk that is not for an audience has no influence on what that audience gets.
    """

    own: str | None  # the visible scope besides SHARED; None: all scopes

    def sees(self, scope: str) -> bool:
        """Whether the audience may find chunks of this scope."""
        return self.own is None or scope in {SHARED, self.own}


OWNER = Audience(None)
PUBLIC = Audience(SHARED)


def scope_of(session: SessionKey) -> str:
    """Return the scope of what is said in a session."""
    return OWNERS if kind_of(session) is SessionKind.OWNER else str(session)


def audience_of(session: SessionKey, kind: SessionKind) -> Audience:
    """Return the audience of a session whose turn is of this kind."""
    if kind is SessionKind.OWNER:
        return OWNER
    scope = scope_of(session)
    return PUBLIC if scope == OWNERS else Audience(scope)  # decided by the kind of the turn


class Chunk(Struct, frozen=True):
    """A range of lines of one file or transcript that search finds as a whole. Lines count from 1,
    both ends included.
    """

    path: str  # `memory/2026-11-21.md`, `@work/MEMORY.md`, `sessions/main.jsonl`
    start_line: int
    end_line: int
    text: str
    source: Source
    scope: str  # SHARED, OWNERS, or the key of the one session that may find it
    date: date | None = None
    speaker: str = ""  # a name or a role; "" if nobody speaks
    context: str = ""  # the headings above it, searched with it but not shown
    importance: float = 1.0  # 0..1: how far its source is trusted

    def moved(self, by: int) -> Chunk:
        """Return the chunk with its lines moved down by `by`."""
        return replace(self, start_line=self.start_line + by, end_line=self.end_line + by)

    @property
    def shown(self) -> str:
        """The text as it is shown to readers: words of a transcript are preceded by their
        speaker.
        """
        if self.source is not Source.SESSIONS or not self.speaker:
            return self.text
        is_named = self.text.startswith(f"{self.speaker}: ")
        return self.text if is_named else f"[{self.speaker}] {self.text}"


class Hit(Struct, frozen=True):
    """A found chunk, with its score and all partial scores."""

    chunk: Chunk
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)
    newer: str = ""  # `path:line` of a hit with a newer value of the same thing

    def as_json(self) -> dict[str, Any]:
        """Return an entry of `results` as in `agentd memory search`."""
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


class SearchResult(Struct, frozen=True):
    """The answer to a search.

    `reason` says why the answer is empty, degraded or doubtful; "" when all is well. It is an
    EmptyReason, or a SearchShortfall: `indexing` (not all is indexed yet), `warming` (keywords
    alone, the first search after a start), `vectors_missing` (not all is embedded yet),
    `embedder_down`, `embedder_slow`. `confidence`, 0..1, is the likelihood that one of the hits
    answers the query; it has no meaning without hits.
    """

    hits: tuple[Hit, ...]
    reason: str = ""
    confidence: float = 1.0

    def as_json(self) -> dict[str, Any]:
        """Return the shape of `agentd memory search`."""
        return {
            "results": [hit.as_json() for hit in self.hits],
            "confidence": round(self.confidence, 4) if self.hits else 0.0,
            "reason": self.reason,
        }


IndexWord = Literal["ready", "indexing", "rebuilding", "embedding"]


class IndexState(Struct, frozen=True):
    """The state of the index, for `status`."""

    files: int
    chunks: int
    pending: int
    state: IndexWord
    embedder: str = "none"  # the model whose vectors are searched
    vectors: int = 0  # chunks that still wait for a vector of the best model
    reason: str = ""  # the SearchShortfall of searches at the moment; "" if none
    nbytes: int = 0  # bytes held in memory: texts, words, vectors

    def as_json(self) -> dict[str, Any]:
        """Return the index's entry in `agentd status` and `agentd memory status`."""
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


MOVES = "moves"  # the meta name under which a ChunkStore counts how often chunks moved

Piece_co = TypeVar("Piece_co", covariant=True)


class LinePatch(Struct, Generic[Piece_co], frozen=True):
    """A change of lines of a file: lines `first` up to but not including `end` became `count`
    lines. `pieces` are all pieces that begin in the new lines, with their final line numbers.
    """

    first: int
    end: int
    count: int
    pieces: tuple[Piece_co, ...]

    @property
    def by(self) -> int:
        """By how many lines everything after the patch moves down."""
        return self.count - (self.end - self.first)


class Entry(Struct, frozen=True):
    """A chunk in the form in which it is indexed."""

    chunk: Chunk
    terms: str  # its search words, folded and separated by spaces
    digest: bytes  # of the text to embed: equal texts share a vector
    traits: bytes = b""  # features of the text for ranking; empty if not computed yet


class StoredChunk(Struct, frozen=True):
    """A chunk as read from the store. Ids ascend; a changed chunk gets a new id."""

    id: int
    chunk: Chunk
    terms: str = ""
    traits: bytes = b""


class Unembedded(Struct, frozen=True):
    """A chunk whose text has no vector yet."""

    id: int
    digest: bytes
    chunk: Chunk


class Fusion(StrEnum):
    """How the scores of the keyword retriever and of the vector retriever are combined."""

    RRF = "rrf"  # by ranks alone
    WEIGHTED = "weighted"  # by scores scaled per query
    STRUCTURED = "structured"  # by scores and by the context of a unit


class EmptyReason(StrEnum):
    """Why a search found nothing, or probably nothing that answers."""

    NOTHING_INDEXED = "nothing_indexed"
    EMPTY_QUERY = "empty_query"
    NO_MATCH = "no_match"
    BELOW_THRESHOLD = "below_threshold"
    NOTHING_FITS = "nothing_fits"  # there are hits, but probably none answers
    BUDGET = "budget"  # the best hit does not fit `max_tokens`; shorter ones may
    SCOPE = "scope"  # this kind of session may not find what was asked for


class SearchShortfall(StrEnum):
    """Something a search had to do without, the most serious first."""

    WARMING = "warming"  # only keywords: the first search after a start
    INDEXING = "indexing"  # the last changes are not indexed yet
    EMBEDDER_DOWN = "embedder_down"
    EMBEDDER_SLOW = "embedder_slow"
    VECTORS_MISSING = "vectors_missing"  # not all is embedded yet


_ON_THE_QUERY = frozenset({EmptyReason.EMPTY_QUERY, EmptyReason.BUDGET, EmptyReason.SCOPE})


def heavier(reason: str, lack: SearchShortfall) -> str:
    """Return the reason an answer gives: `reason` if the query itself is why it is empty, else the
    more serious of `reason` and `lack`.
    """
    if reason in _ON_THE_QUERY:
        return reason
    order = [str(each) for each in SearchShortfall]
    return min(reason, str(lack), key=lambda r: order.index(r) if r in order else len(order))


class SearchQuery(Struct, frozen=True):
    """A search request. None leaves a choice to the settings."""

    text: str  # any string
    limit: int = 5
    sources: frozenset[Source] | None = None  # None: all sources the reader may search
    max_tokens: int | None = None  # of all hits together
    min_score: float | None = None  # 0..1
    recency: bool | None = None  # whether older hits score lower
    half_life_days: float | None = None
    fusion: Fusion | None = None
    queries: tuple[str, ...] = ()  # the same question in other words or languages
    waits: bool = True  # whether to wait for the index after a start; else keywords answer

    @property
    def phrasings(self) -> tuple[str, ...]:
        """The text and all its rephrasings."""
        return (self.text, *self.queries)


class SearchOptions(Struct, frozen=True):
    """The settings of one search; every stage of the pipeline can be switched off here."""

    limit: int = 10
    max_tokens: int | None = None  # of all hits together
    min_score: float = 0.0  # on the calibrated scale 0..1
    sources: frozenset[Source] | None = None  # None: all of them
    today: date | None = None  # the reference date of "yesterday" and ages; None: no dates

    fusion: Fusion = Fusion.STRUCTURED
    gate: bool = True  # weight each retriever by how well it suits the query
    vector_weight: float = 0.7  # these two apply to WEIGHTED only
    text_weight: float = 0.3

    recency: bool = True
    half_life_days: float = 30.0
    recency_floor: float = 0.9  # the factor that the score of the oldest keeps
    importance: bool = True
    mmr: bool = False
    mmr_lambda: float = 0.7
    least_confidence: float = 0.05  # 0..1: below it the answer is NOTHING_FITS
    newest_first: bool = True  # among hits that say different values of the same thing
    chatter: float = 0.8  # the largest share of transcripts among the first hits; 1: no limit
    join: bool = True  # adjacent hits become one


class Ranked(Struct, frozen=True):
    """One ranked hit: slots of one file in reading order, a score of 0..1, and its partial
    scores.
    """

    slots: tuple[int, ...]
    score: float
    tokens: int
    scores: Mapping[str, float] = field(default_factory=dict)
    superseded_by: int | None = None  # a slot with a newer value of the same thing


class Ranking(Struct, frozen=True):
    """The ranked answer to a search. `reason` is set when it is empty; `confidence`, 0..1, is the
    likelihood that one of the hits answers; `newest_leads` is True if newer hits come first for
    such a query.
    """

    hits: tuple[Ranked, ...]
    reason: EmptyReason | None = None
    confidence: float = 1.0
    newest_leads: bool = False

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
