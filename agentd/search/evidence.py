"""What is known of the candidates of one query, gathered from the legs and the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentd.domain.search import SearchOptions
from agentd.ranking.structured import Evidence
from agentd.search.corpus import NOBODY, Corpus
from agentd.search.postings import Floats, Postings, Slots
from agentd.search.query import Query
from agentd.search.vectors import Vectors

REACH = 3  # neighbours that are looked at to each side
CLOSE = 2  # terms apart


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with its vector, for the units of one corpus."""

    query: Query
    terms: tuple[tuple[str, float], ...]  # what is searched for, and how much it counts
    vector: Floats | None
    window: tuple[int, int] | None  # of the days that the query names
    options: SearchOptions
    only_days: bool = False  # whether it asks for what there was then, and no more


@dataclass(frozen=True, slots=True)
class Spread:
    """The terms of `count` units one after the other, see `Corpus.spread`."""

    count: int
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    numbers: NDArray[np.int32]


class Gatherer:
    """Gathers evidence from the parts of a searcher."""

    def __init__(self, corpus: Corpus, postings: Postings) -> None:
        self._corpus = corpus
        self._postings = postings

    def evidence(self, asked: Asked, slots: Slots, vectors: Vectors | None) -> Evidence:
        """What is known of the units at `slots`."""
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
        spread = Spread(len(slots), *corpus.spread(slots))
        return Evidence(
            impacts=impacts[at],
            idf=idf,
            cosines=cosines,
            question=question[at],
            file=corpus.column("file")[slots].astype(np.int64),
            length=corpus.column("tokens")[slots].astype(np.float32),
            speaker=_speaker(query, slots, corpus),
            when=(corpus.column("times")[slots] * query.asks_when).astype(np.float32),
            amount=(corpus.column("figures")[slots] * query.asks_amount).astype(np.float32),
            date=self._timely(asked, slots),
            exact=_exact(query, spread, corpus),
            pairs=_pairs(terms, spread, corpus, idf),
        )

    def _timely(self, asked: Asked, slots: Slots) -> Floats:
        if asked.window is None:
            return np.zeros(len(slots), np.float32)
        return self._corpus.timely(slots, asked.window)


def _speaker(query: Query, slots: Slots, corpus: Corpus) -> Floats:
    """1 where the one speaker that the query names speaks, -1 where another does."""
    named = {number for name in query.names for number in corpus.speakers(name)}
    if len(named) != 1:
        return np.zeros(len(slots), np.float32)
    own = corpus.column("speaker")[slots]
    other = np.where(own == NOBODY, 0.0, -1.0)
    return np.where(own == named.pop(), 1.0, other).astype(np.float32)


def _exact(query: Query, spread: Spread, corpus: Corpus) -> Floats:
    """The share of the query's quoted phrases and identifiers that each unit holds word for word."""
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


def _pairs(terms: Sequence[str], spread: Spread, corpus: Corpus, idf: Floats) -> Floats:
    """The idf-weighted share of the query's neighbouring terms that stand close and in order, each
    where the unit first has it.
    """
    if len(terms) < 2:
        return np.zeros(spread.count, np.float32)
    numbers = np.array([corpus.term_id(term) for term in terms])
    ranks = np.argsort(numbers, kind="stable")
    at = np.minimum(np.searchsorted(numbers[ranks], spread.numbers), len(terms) - 1)
    columns = ranks[at]
    found = np.flatnonzero(numbers[columns] == spread.numbers)[::-1]
    places = np.tile(-1000 * np.arange(1, len(terms) + 1), (spread.count, 1))
    places[spread.rows[found], columns[found]] = spread.places[found]
    gaps = np.diff(places, axis=1)
    weights = np.minimum(idf[:-1], idf[1:])
    close = ((gaps > 0) & (gaps <= CLOSE)) * weights
    shares: Floats = close.sum(axis=1, dtype=np.float32) / np.float32(max(weights.sum(), 1e-6))
    return shares
