"""Gathers the ranking evidence on the candidates of one query from the retrievers and the
corpus.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from agentd.core.search import SearchOptions
from agentd.memory.index.ranking.structured import RankingEvidence
from agentd.memory.index.search.corpus import NOBODY, Corpus
from agentd.memory.index.search.postings import Floats, Postings, Slots
from agentd.memory.index.search.query import Query
from agentd.memory.index.search.vectors import Vectors

REACH = 3  # neighbours considered on each side


class CorpusQuery(Struct, frozen=True):
    """A query as it applies to one corpus, with its vector."""

    query: Query
    terms: tuple[tuple[str, float], ...]  # search terms with their weights
    vector: Floats | None
    window: tuple[int, int] | None  # first and last of the days that the query names, as ordinals
    options: SearchOptions
    only_days: bool = False  # whether it asks only what there was on those days


class TermSpread(Struct, frozen=True):
    """The terms of `count` units in one run, see `Corpus.spread`."""

    count: int
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    numbers: NDArray[np.int32]


class Gatherer:
    """Gathers evidence from corpus and postings."""

    def __init__(self, corpus: Corpus, postings: Postings) -> None:
        self._corpus = corpus
        self._postings = postings

    def evidence(
        self, asked: CorpusQuery, slots: Slots, vectors: Vectors | None
    ) -> RankingEvidence:
        """Return the ranking evidence on the units at `slots`."""
        corpus, query = self._corpus, asked.query
        grid = corpus.around(slots, REACH)
        units, at = np.unique(grid, return_inverse=True)
        at = at.reshape(grid.shape)
        missing = units == NOBODY
        units = np.maximum(units, 0)
        terms = [term for term, _ in asked.terms]
        weights = np.array([weight for _, weight in asked.terms], np.float32)
        impacts = self._postings.impacts(units, terms) * weights
        impacts[missing] = 0.0
        cosines = None
        if asked.vector is not None and vectors is not None:
            cosines = np.where(missing, np.float32(0.0), vectors.some(asked.vector, units))[at]
        question = corpus.column("question")[units].astype(np.bool_) & ~missing
        idf = self._postings.idfs(terms) * weights
        own = slots.astype(np.int64)
        return RankingEvidence(
            impacts=impacts[at],
            idf=idf,
            cosines=cosines,
            question=question[at],
            asks=corpus.column("asks")[own].astype(np.bool_),
            spoken=corpus.column("speaker")[own] != NOBODY,
            date=self._timely(asked, slots),
            exact=_exact(query, TermSpread(len(slots), *corpus.spread(slots)), corpus),
        )

    def _timely(self, asked: CorpusQuery, slots: Slots) -> Floats:
        if asked.window is None:
            return np.zeros(len(slots), np.float32)
        return self._corpus.timely(slots, asked.window)


def _exact(query: Query, spread: TermSpread, corpus: Corpus) -> Floats:
    """Return the share of the query's quoted phrases and identifiers that each unit contains
    verbatim.
    """
    out: Floats = np.zeros(spread.count, np.float32)
    for phrase in query.exact:
        numbers = [corpus.term_id(term) for term in phrase]
        size = len(spread.rows) - len(numbers) + 1
        if size <= 0 or NOBODY in numbers:
            continue
        begins = spread.rows[:size] == spread.rows[len(numbers) - 1 :]
        for ahead, number in enumerate(numbers):
            begins &= spread.numbers[ahead : ahead + size] == number
        out[np.unique(spread.rows[:size][begins])] += 1.0
    out /= max(len(query.exact), 1)
    return out
