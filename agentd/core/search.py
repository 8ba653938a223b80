"""What the index keeps of a chunk beside it, how a search is to be done, and what it ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Generic, TypeVar

from agentd.core.chunk import Chunk, Source

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
