"""Selects the units to rank for a query: the best of each retriever, and their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from math import isfinite

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from agentd.core.search import SearchOptions, Source
from agentd.memory.index.ranking import temporal
from agentd.memory.index.ranking.temporal import AnchoredDays
from agentd.memory.index.search import words
from agentd.memory.index.search.corpus import Corpus
from agentd.memory.index.search.entries import UNDATED
from agentd.memory.index.search.gathering import CorpusQuery
from agentd.memory.index.search.postings import Floats, Postings, Slots, best
from agentd.memory.index.search.query import Query, parse
from agentd.memory.index.search.spelling import Spelling
from agentd.memory.index.search.vectors import Vectors

DEPTH = 200  # units that each retriever proposes
SEEDS = 60  # units whose neighbours are proposed, too
EVENTS = 30  # units searched for the days of an event
QUIET = 20  # units from other sources than transcripts that are ranked at least
ALTERNATIVES = 2  # known words that replace an unknown one
GUESSED = 0.7  # weight of such a replacement

NOWHERE = np.float32(-np.inf)


class Candidates(Struct):
    """The units to rank, with total and partial scores, in order of rank."""

    slots: Slots
    score: Floats
    partial: dict[str, Floats]

    def take(self, order: NDArray[np.int64]) -> None:
        """Reorder the candidates, or keep some of them."""
        self.slots, self.score = self.slots[order], self.score[order]
        self.partial = {name: column[order] for name, column in self.partial.items()}

    def reorder(self, order: Sequence[int]) -> None:
        """Reorder the candidates but leave the descending scores in place."""
        score = self.score
        self.take(np.array(order, np.int64))
        self.score = score

    def explained(self, rows: Sequence[int]) -> list[dict[str, float]]:
        """Return the partial scores of some candidates by name, rounded to four digits, without
        missing ones.
        """
        table = np.stack([column[rows] for column in self.partial.values()], axis=1)
        return [
            {
                name: value
                for name, value in zip(self.partial, values, strict=True)
                if isfinite(value)
            }
            for values in np.round(table.astype(np.float64), 4).tolist()
        ]


class Proposer:
    """Parses queries and proposes units, with the parts of a searcher."""

    def __init__(self, corpus: Corpus, postings: Postings, spelling: Spelling) -> None:
        self._corpus = corpus
        self._postings = postings
        self._spelling = spelling

    def asked(self, text: str, vector: Floats | None, options: SearchOptions) -> CorpusQuery:
        """Parse a text for this corpus: correct its spelling, and resolve the days it names."""
        query = parse(text, options.today)
        window = query.window
        if query.anchor is not None and options.today is not None:
            window = self._anchored(query.anchor, options.today) or window
        only_days = query.only_days and window is not None
        return CorpusQuery(query, self._terms(query), vector, window, options, only_days=only_days)

    def _terms(self, query: Query) -> tuple[tuple[str, float], ...]:
        """Return the query's terms with weight 1; a term that no unit contains is replaced by its
        nearest known terms, with weight GUESSED.
        """
        known: dict[str, float] = {}
        for term in query.terms:
            known[term] = 1.0
            if self._postings.frequency(term):
                continue
            near = self._spelling.near(query.spelled.get(term, term))
            fixed = [t for word, far in near if far == near[0][1] for t in words.terms(word)[:1]]
            fixed = [t for t in dict.fromkeys(fixed) if self._postings.frequency(t)][:ALTERNATIVES]
            if fixed:
                del known[term]
                known |= {t: GUESSED for t in fixed if t not in known}
        return tuple(known.items())

    def _anchored(self, anchor: AnchoredDays, today: date) -> tuple[int, int] | None:
        """Return the days that an event names: search for the event, and use the best unit that is
        dated or names days. None if there is none.
        """
        event = parse(anchor.event).terms
        slots, scores = self._postings.top([(term, 1.0) for term in event], EVENTS)
        if not len(slots):
            return None
        column = self._corpus.column
        told, day = column("told")[slots], column("day")[slots]
        lasting = column("told_last")[slots] > told
        worth = scores * np.where(told == UNDATED, 1.0, np.where(lasting, 1.6, 1.3))
        worth = np.where((told == UNDATED) & (day == UNDATED), -1.0, worth)
        equals = np.flatnonzero(worth == worth.max()).tolist()
        best = min(equals, key=lambda at: self._corpus.place(int(slots[at])))
        first = int(told[best] if told[best] != UNDATED else day[best])
        last = int(column("told_last")[slots[best]]) if told[best] != UNDATED else first
        if first == UNDATED:
            return None
        span = (date.fromordinal(last if anchor.closing else first), date.fromordinal(last))
        days = temporal.beside(span, anchor.unit, anchor.side, anchor.count)
        return days[0].toordinal(), days[1].toordinal()

    def propose(self, asked: CorpusQuery, vectors: Vectors | None) -> Candidates:
        """Return the best units of each retriever and their neighbours, in order of path and
        line.
        """
        allowed = self._corpus.allowed(asked.options.sources)
        mask = None if asked.options.sources is None else allowed  # retrievers skip removed units
        terms = asked.terms
        found = [self._settled(*self._postings.top(terms, DEPTH, mask))]
        if asked.vector is not None and vectors is not None:
            found.append(self._settled(*vectors.top(asked.vector, DEPTH, mask)))
        if asked.window is not None:
            inside = allowed & self._corpus.within(asked.window)
            found.append(self._postings.top(terms, SEEDS, inside)[0])
            if asked.vector is not None and vectors is not None:
                found.append(vectors.top(asked.vector, SEEDS, inside)[0])
        if asked.only_days:
            found.append(self._dated(asked, allowed))
        found += self._quiet(asked, vectors, np.concatenate(found))
        near = self._corpus.around(np.concatenate([some[:SEEDS] for some in found]), 1).ravel()
        near = near[near >= 0]
        slots = np.unique(np.concatenate([*found, near[allowed[near]]])).astype(np.int64)
        slots = np.array(sorted(slots.tolist(), key=self._corpus.place), np.int64)
        weights = np.array([weight for _, weight in terms], np.float32)
        keyword = (self._postings.impacts(slots, [term for term, _ in terms]) * weights).sum(axis=1)
        partial = {"keyword": np.where(np.isin(slots, found[0]), keyword, NOWHERE)}
        if asked.vector is not None and vectors is not None:
            cosine = vectors.some(asked.vector, slots)
            partial["vector"] = np.where(np.isin(slots, found[1]), cosine, NOWHERE)
        if asked.window is not None and asked.only_days:
            dated = self._corpus.dated(slots, asked.window)
            if dated.any():
                partial["dated"] = dated
        return Candidates(slots, np.zeros(len(slots), np.float32), partial)

    def _dated(self, asked: CorpusQuery, allowed: NDArray[np.bool_]) -> Slots:
        """Return the units of the days asked for, or that name those days, most content first."""
        if asked.window is None:
            return np.zeros(0, np.int64)
        slots = np.flatnonzero(allowed & self._corpus.within(asked.window))
        says = np.log1p(self._corpus.column("tokens")[slots]).astype(np.float32)
        worth = self._corpus.dated(slots, asked.window) * self._corpus.importance(slots) * says
        at, scores = best(worth.astype(np.float32), DEPTH, above=0.0)
        equals = slots[at[scores == scores[-1:]]].tolist()
        equals.sort(key=self._corpus.place)
        return np.concatenate([slots[at[scores > scores[-1:]]], np.array(equals, np.int64)])[:DEPTH]

    def _settled(self, slots: Slots, scores: Floats) -> Slots:
        """Order the units of a retriever that tie at the last seed by path and line, so that the
        same texts give the same seeds whatever was indexed first.
        """
        if len(slots) <= SEEDS or scores[SEEDS - 1] != scores[SEEDS]:
            return slots
        tied = scores == scores[SEEDS]
        slots = slots.copy()
        slots[tied] = sorted(slots[tied].tolist(), key=self._corpus.place)
        return slots

    def _quiet(self, asked: CorpusQuery, vectors: Vectors | None, proposed: Slots) -> list[Slots]:
        """Return the best units of other sources, if transcripts have left them hardly any
        place.
        """
        talk = self._corpus.number(Source.SESSIONS)
        source = self._corpus.column("source")
        if asked.options.chatter >= 1.0 or (source[proposed] != talk).sum() >= QUIET:
            return []
        others = self._corpus.allowed(asked.options.sources) & (source != talk)
        if not others.any():
            return []
        found = [self._postings.top(asked.terms, QUIET, others)[0]]
        if asked.vector is not None and vectors is not None:
            found.append(vectors.top(asked.vector, QUIET, others)[0])
        return found
