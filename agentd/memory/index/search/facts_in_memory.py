"""Facts in memory, where they are searched. Only one thread uses it at a time.

A query is compared with all vectors, since there are only thousands of facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from agentd.core.fact import Fact
from agentd.core.text import sentences
from agentd.memory.index.ranking import fact_ranking as ranking
from agentd.memory.index.ranking import importance
from agentd.memory.index.search import words
from agentd.memory.index.search.postings import Floats, Postings, Slots, best
from agentd.memory.index.search.vectors import Vectors, unit_rows

SPARE = 1_000  # removed slots; with more than this and than live facts, rebuild
COVER_LEAST = 0.2  # share of the text's words that a fact found by words alone must hold
Chosen = NDArray[np.bool_]

_EVERYWHERE = frozenset({"user"})  # "The user's dog …": common to all facts


class FoundFacts(Struct, frozen=True):
    """A fact that was found."""

    id: str
    score: float
    scores: dict[str, float]


class FactQuestion(Struct, frozen=True):
    """A query for facts: the terms of each piece of its text, all terms, the cosines of each piece
    by slot, and the least cosine of a candidate. `names` are the terms of the names it mentions.
    """

    pieces: Sequence[frozenset[str]]
    terms: Sequence[str]
    cosines: Floats | None
    least: float
    names: Sequence[str]


class FactMirror:
    """Keywords and vectors of active facts. Each retriever proposes at most `candidates` facts;
    `similarity` is the least cosine of a candidate, on the scale of sentence transformers.
    """

    def __init__(self, similarity: float, candidates: int) -> None:
        self._similarity = similarity
        self._candidates = candidates
        self._postings = Postings()
        self._facts: list[Fact | None] = []  # by slot
        self._slots: dict[str, int] = {}
        self._vectors: dict[str, Vectors] = {}

    def __len__(self) -> int:
        """Return how many facts can be found."""
        return len(self._slots)

    @property
    def is_worn(self) -> bool:
        """Whether most slots belong to removed facts."""
        return len(self._facts) - len(self) > SPARE + len(self)

    def put(self, facts: Sequence[Fact]) -> None:
        """Add or update facts; a fact with an unchanged text keeps its vector."""
        last = {fact.id: fact for fact in facts}
        new = []
        for fact in last.values():
            slot = self._slots.get(fact.id)
            held = None if slot is None else self._facts[slot]
            if slot is not None and held is not None and held.text == fact.text:
                self._facts[slot] = fact
            else:
                new.append(fact)
        self.remove([fact.id for fact in new])
        first = self._postings.add([_terms(fact.text) for fact in new])
        self._facts.extend(new)
        self._slots.update((fact.id, first + at) for at, fact in enumerate(new))

    def remove(self, fact_ids: Sequence[str]) -> None:
        """Remove facts and their vectors."""
        slots = [self._slots.pop(fact_id) for fact_id in fact_ids if fact_id in self._slots]
        self._postings.remove(slots)
        for slot in slots:
            self._facts[slot] = None
        for vectors in self._vectors.values():
            vectors.remove(slots)

    def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Add vectors, in stored form, of facts that are here."""
        known = [fact_id for fact_id in vectors if fact_id in self._slots]
        if not known:
            return
        rows = np.frombuffer(b"".join(vectors[fact_id] for fact_id in known), "<f2")
        rows = rows.reshape(len(known), -1).astype(np.float32)
        if model not in self._vectors:
            self._vectors[model] = Vectors(rows.shape[1])
        self._vectors[model].put([self._slots[fact_id] for fact_id in known], rows)

    def nearest(self, vector: bytes, model: str, limit: int) -> list[str]:
        """Return the ids of the facts nearest to a vector of `model`, nearest first, however
        distant.
        """
        cosines = self._cosines([vector], model)
        if cosines is None:
            return []
        slots, _ = best(cosines[0], limit, above=-1.0)
        found = (self._facts[slot] for slot in slots[:limit].tolist())
        return [fact.id for fact in found if fact is not None]

    def cosines(
        self, fact_ids: Sequence[str], vectors: Sequence[bytes], model: str
    ) -> dict[str, float]:
        """Return for each fact the highest cosine with one of `vectors`, which are of `model`;
        without the facts that have no vector of it.
        """
        known = self._vectors.get(model)
        slots = {i: self._slots[i] for i in fact_ids if i in self._slots}
        if known is None or not slots:
            return {}
        asked = np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
        rows = known.rows(np.array(list(slots.values()), np.int64))
        nearest: Floats = (unit_rows(asked) @ rows.T).max(axis=0)
        lengths: Floats = np.linalg.norm(rows, axis=1)
        told = zip(slots, nearest.tolist(), lengths.tolist(), strict=True)
        return {fact_id: cosine for fact_id, cosine, length in told if length}

    def find(
        self,
        pieces: Sequence[str],
        vectors: Sequence[bytes] | None,
        model: str,
        now: datetime,
        limit: int,
    ) -> list[FoundFacts]:
        """Return the first `limit` facts that relate to a text, best first. `pieces` are the text
        and parts of it, `vectors` their vectors, of `model`.
        """
        asked = self._question(pieces, vectors, model)
        heard = self._postings.top([(term, 1.0) for term in asked.terms], self._candidates)[0]
        heard, meant = heard[: self._candidates], self._nearest(asked)
        slots = np.union1d(heard, meant).astype(np.int64)
        if not len(slots):
            return []
        related, cover = self._relations(slots, asked)
        held = np.isin(slots, heard) & (cover >= COVER_LEAST)
        by_words = held & ranking.is_said(np.where(held, cover, np.float32(0.0)))
        by_words &= self._choose_named(slots, asked, held)
        impacts = self._postings.impacts(slots, asked.terms).sum(axis=1)
        retrieved = [("keyword", impacts, by_words), ("keyword", impacts, held & ~by_words)]
        by_meaning = np.isin(slots, meant)
        if asked.cosines is not None:
            # Facts found by words are ranked by meaning, too, however distant.
            retrieved[1:1] = [("vector", asked.cosines.max(axis=0)[slots], by_meaning | by_words)]
        keep = np.flatnonzero(held | by_meaning)
        ranked = [
            (name, np.where(by, scores, -np.inf).astype(np.float32)[keep])
            for name, scores, by in retrieved
        ]
        return self._ranked(slots[keep], ranked, related[keep], model, now, limit)

    def _question(
        self, pieces: Sequence[str], vectors: Sequence[bytes] | None, model: str
    ) -> FactQuestion:
        terms = [dict.fromkeys(_terms(piece)) for piece in pieces]
        return FactQuestion(
            pieces=[frozenset(own) for own in terms],
            terms=list(dict.fromkeys(term for own in terms for term in own)),
            cosines=None if vectors is None else self._cosines(vectors, model),
            least=ranking.threshold(model, self._similarity),
            names=list(dict.fromkeys(term for piece in pieces for term in _names(piece))),
        )

    def _choose_named(self, slots: Slots, asked: FactQuestion, held: Chosen) -> Chosen:
        """Return which facts have one of the names that the query mentions; all if none has, or it
        mentions none.
        """
        if not asked.names:
            return np.ones(len(slots), np.bool_)
        named: Chosen = held & (self._postings.impacts(slots, asked.names).sum(axis=1) > 0)
        return named if named.any() else np.ones(len(slots), np.bool_)

    def _nearest(self, asked: FactQuestion) -> Slots:
        """Return the facts whose cosine with any piece is high enough."""
        if asked.cosines is None:
            return np.zeros(0, np.int64)
        slots, found = best(asked.cosines.max(axis=0), self._candidates, above=-1.0)
        return slots[found >= asked.least][: self._candidates]

    def _relations(self, slots: Slots, asked: FactQuestion) -> tuple[Floats, Floats]:
        """Return for each fact its highest relation to any piece, and the highest share of any
        piece's words that it holds.
        """
        counts = [self._postings.frequency(term) for term in asked.terms]
        weights = ranking.rarity(counts, len(self))
        held = (self._postings.impacts(slots, asked.terms) > 0) * weights
        related = np.full(len(slots), -np.inf, np.float32)
        most = np.zeros(len(slots), np.float32)
        for at, terms in enumerate(asked.pieces):
            inside = np.array([term in terms for term in asked.terms], np.bool_)
            whole = weights[inside].sum() or np.float32(1.0)
            cover = (held[:, inside].sum(axis=1) / whole).astype(np.float32)
            cosine = None if asked.cosines is None else asked.cosines[at][slots]
            found = ranking.relation(cosine, cover, asked.least)
            related, most = np.maximum(related, found), np.maximum(most, cover)
        return related, most

    def _ranked(
        self,
        slots: Slots,
        retrieved: Sequence[tuple[str, Floats]],
        related: Floats,
        model: str,
        now: datetime,
        limit: int,
    ) -> list[FoundFacts]:
        """Order the candidates and return the first `limit`. `retrieved` are named scores; the last
        one is for weak matches by words.
        """
        facts = [self._facts[slot] for slot in slots.tolist()]
        worths = [importance.worth(fact, now) if fact else 0.0 for fact in facts]
        fused = ranking.scores(
            [scores for _, scores in retrieved], np.array(worths, np.float32), weak=1
        )
        first = np.argsort(-fused, kind="stable")
        known = self._vectors.get(model)
        rows = np.zeros((len(slots), 1), np.float32) if known is None else known.rows(slots)
        found = []
        for at in first[ranking.diversify(fused[first], rows[first], most=limit)].tolist():
            # A fact without a vector has the lowest cosine.
            parts = {name: float(scores[at]) for name, scores in retrieved if scores[at] > -1.0}
            parts |= {"worth": worths[at], "relation": float(related[at])}
            if (fact := facts[at]) is not None:
                found.append(FoundFacts(fact.id, float(fused[at]), parts))
        return found

    def _cosines(self, vectors: Sequence[bytes], model: str) -> Floats | None:
        """Return the cosines of each vector by slot, -1 where a fact has none; None if there are no
        vectors of the model.
        """
        known = self._vectors.get(model)
        if known is None:
            return None
        found = np.full((len(vectors), len(self._facts)), -1.0, np.float32)
        for row, vector in zip(found, vectors, strict=True):
            cosines = known.scores(np.frombuffer(vector, "<f4"))
            row[: len(cosines)] = cosines
        return found


def _names(text: str) -> list[str]:
    """Return the terms of names: identifiers, and capitalised words that do not begin a
    sentence.
    """
    found = []
    for sentence in sentences(text):
        for at, word in enumerate(words.raw_words(sentence)):
            if words.is_identifier(word) or (at and word[:1].isupper() and len(word) > 1):
                found += _terms(word)
    return found


def _terms(text: str) -> list[str]:
    return [term for term in words.terms(text) if term not in _EVERYWHERE]
