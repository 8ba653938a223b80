"""Search in memory: retrievers, fusion, decay, importance, diversity, threshold, token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from agentd.core.search import (
    Chunk,
    EmptyReason,
    Entry,
    Fusion,
    Ranked,
    Ranking,
    SearchOptions,
    Source,
    StoredChunk,
)
from agentd.core.transcript import RowRole
from agentd.memory.index.ranking import confidence, fusion, newest, packing, selection, structured
from agentd.memory.index.ranking.fusion import FITTED, Weights
from agentd.memory.index.ranking.kinds import KindClassifiers
from agentd.memory.index.search import words
from agentd.memory.index.search.arrays import Arrays, inside, of_strings, part, strings
from agentd.memory.index.search.candidates import QUIET, Candidates, Proposer
from agentd.memory.index.search.corpus import NOBODY, Corpus
from agentd.memory.index.search.entries import entry, head_size
from agentd.memory.index.search.gathering import CorpusQuery, Gatherer
from agentd.memory.index.search.postings import Floats, Postings, Slots
from agentd.memory.index.search.spelling import Spelling
from agentd.memory.index.search.vectors import Vectors
from agentd.memory.index.search.vocabulary import Vocabulary

HEAD = 30  # first units that are compared with each other for diversity
RIVAL = 0.2  # share of the best score: a unit below it is not considered an answer
CHANCE = 0.1  # cosines below this occur between unrelated texts
UNKNOWN = 8.0  # weight of a term that no unit holds
TAIL = 300  # units that remain for making hits


class Searcher:
    """Searches units by slot. Neither a search nor another change may run during a change."""

    def __init__(
        self,
        dimension: int = 0,
        weights: Weights = FITTED,
        restored: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """`restored` are units as `arrays` returned them; their vectors have to be set again."""
        self.weights = weights
        if restored:
            self.vocabulary = Vocabulary(strings(restored["terms"]))
            self.corpus = Corpus.restored(part("corpus", restored), self.vocabulary)
            self.postings = Postings.restored(part("postings", restored), self.vocabulary)
            self.spelling = Spelling.restored(part("spelling", restored))
        else:
            self.vocabulary = Vocabulary()
            self.corpus = Corpus(self.vocabulary)
            self.postings = Postings(self.vocabulary)
            self.spelling = Spelling()
        self.vectors = Vectors(dimension) if dimension else None
        self.kinds: KindClassifiers | None = None  # for the model that made the vectors
        self._proposer = Proposer(self.corpus, self.postings, self.spelling)
        self._gatherer = Gatherer(self.corpus, self.postings)

    def __len__(self) -> int:
        """Return how many units can be found."""
        return len(self.postings)

    @property
    def nbytes(self) -> int:
        """Bytes of everything but the vectors."""
        parts = (self.vocabulary, self.corpus, self.postings, self.spelling)
        return sum(part.nbytes for part in parts)

    def arrays(self) -> Arrays:
        """Return everything but the vectors as arrays, for `restored`; valid until the next
        change.
        """
        return {
            "terms": of_strings(self.vocabulary.names),
            **inside("corpus", self.corpus.arrays()),
            **inside("postings", self.postings.arrays()),
            **inside("spelling", self.spelling.arrays()),
        }

    def add(self, units: Sequence[Chunk], vectors: NDArray[np.float32] | None = None) -> list[int]:
        """Add units, with the vectors of their texts if known; return their slots."""
        slots = self.add_entries([entry(unit) for unit in units])
        if vectors is not None:
            self.set_vectors(slots, vectors)
        return slots

    def add_entries(self, entries: Sequence[Entry | StoredChunk]) -> list[int]:
        """Add units whose entries were computed by the present rules; return their slots."""
        written: dict[str, None] = {}  # a dict, so that the order is the same at every start
        for one in entries:
            written.update(dict.fromkeys(words.raw_words(one.chunk.text)))
        self.spelling.learn(map(words.fold, written))
        terms = [one.terms.split() for one in entries]
        traits = [one.traits for one in entries]
        own = [all_[head_size(read) :] for all_, read in zip(terms, traits, strict=True)]
        self.postings.add(terms)
        return self.corpus.add([one.chunk for one in entries], own, traits)

    def set_vectors(self, slots: Sequence[int], matrix: NDArray[np.float32]) -> None:
        """Set the vectors of units. Raises ValueError when the dimension differs."""
        if self.vectors is None:
            self.vectors = Vectors(matrix.shape[1])
        self.vectors.put(slots, matrix)

    def remove(self, slots: Sequence[int]) -> None:
        """Remove units. Their slots are not reused."""
        self.corpus.remove(slots)
        self.postings.remove(slots)
        if self.vectors is not None:
            self.vectors.remove(slots)

    def search(
        self, query: str, vector: NDArray[np.float32] | None, options: SearchOptions
    ) -> Ranking:
        """Return the best units for any text; `vector` is None if there is no vector retriever."""
        if not len(self):
            return Ranking((), EmptyReason.NOTHING_INDEXED)
        if not query.strip():
            return Ranking((), EmptyReason.EMPTY_QUERY)
        asked = self._proposer.asked(query, self._usable(vector), options)
        found = self._proposer.propose(asked, self.vectors)
        if len(found.slots):
            evidence = self._gatherer.evidence(asked, found.slots, self.vectors)
            found.partial |= structured.features(evidence)
            found.take(_related_rows(found.partial))
        if not len(found.slots):
            return Ranking((), EmptyReason.NO_MATCH, 0.0)
        sure = self._fuse(found, asked)
        self._age(found, options)
        self._arrange(found, options)
        newer, leads = self._renew(found, asked)
        self._share(found, asked)
        found.score = np.sort(found.score)[::-1]  # each unit gets the score of its new position
        return replace(self._pack(found, newer, options), confidence=sure, newest_leads=leads)

    def features(
        self, query: str, vector: NDArray[np.float32] | None, options: SearchOptions
    ) -> tuple[Slots, dict[str, Floats], NDArray[np.float32]]:
        """Return the input for fitting weights: the candidates for a text, the features of
        structured fusion by name, and the cosines of those that the vector retriever found.
        """
        asked = self._proposer.asked(query, self._usable(vector), options)
        found = self._proposer.propose(asked, self.vectors)
        columns = structured.features(self._gatherer.evidence(asked, found.slots, self.vectors))
        near = found.partial.get("vector", np.zeros(0, np.float32))
        return found.slots, columns, near[np.isfinite(near)]

    def _usable(self, vector: NDArray[np.float32] | None) -> Floats | None:
        if vector is None or self.vectors is None or not len(self.vectors):
            return None
        vector = np.asarray(vector, np.float32)
        if vector.shape != (self.vectors.dimension,) or not np.isfinite(vector).all():
            return None
        return vector if vector.any() else None

    def _fuse(self, found: Candidates, asked: CorpusQuery) -> float:
        """Score the candidates, best first, relative to the best; return the probability that any
        of them answers.
        """
        options, columns = asked.options, found.partial
        known = "both" if "nearness" in columns else "keywords"
        structure = structured.score(columns, self.weights.structured[known])
        certain = confidence.certainty(structure, self.weights.certainty[known])
        sure = self._confidence(asked, found, structure)
        fused = structure
        if options.fusion is not Fusion.STRUCTURED:
            fused = self._fused_scores(found, asked, float(columns["exact"].max()))
            certain = (fused / max(float(fused.max()), 1e-9) * certain.max()).astype(np.float32)
        found.partial |= {"fused": fused, "structure": structure, "certainty": certain}
        found.score = confidence.scale_scores(certain, sure)
        if "dated" in found.partial:
            found.score = confidence.of_days(certain, found.partial["dated"])
            sure = float(found.score.max())
        order = np.argsort(-found.score, kind="stable")
        source = self.corpus.column("source")[found.slots[order[TAIL:]]]
        quiet = order[TAIL:][source != self.corpus.number(Source.SESSIONS)][:QUIET]
        found.take(np.concatenate([order[:TAIL], quiet]))
        return sure

    def _fused_scores(self, found: Candidates, asked: CorpusQuery, exact: float) -> Floats:
        """Return the retrievers' scores fused by ranks or weights, each retriever weighted by its
        trust for this query; `exact` is the share of the query's phrases and identifiers that the
        best candidate holds.
        """
        options = asked.options
        retrieved = [found.partial[name] for name in ("keyword", "vector") if name in found.partial]
        trust = (1.0, 1.0)
        if options.gate:
            idf = self.postings.idfs([term for term, _ in asked.terms])
            held = np.array(
                [self.postings.frequency(term) > 0 for term, _ in asked.terms], np.bool_
            )
            trust = fusion.trust(idf[held], len(self), exact, vectors=len(retrieved) > 1)
        if options.fusion is Fusion.RRF:
            return fusion.rrf(retrieved, trust[: len(retrieved)])
        weights = (options.text_weight * trust[0], options.vector_weight * trust[1])
        return fusion.weighted_mean(
            [fusion.share_of_best(scores) for scores in retrieved], weights[: len(retrieved)]
        )

    def _confidence(self, asked: CorpusQuery, found: Candidates, structure: Floats) -> float:
        """Return the probability that any candidate answers."""
        cover, cosines = found.partial["cover"], found.partial.get("vector")
        near = None if cosines is None else cosines[np.isfinite(cosines)]
        texts = int(self.corpus.allowed(asked.options.sources).sum())
        if near is None or asked.vector is None or not len(near):
            told = confidence.evidence(structure, None, cover, texts, None)
            return confidence.answer_probability(told, self.weights)
        if self.kinds is None:
            told = confidence.evidence(structure, near, cover, texts, None)
            return confidence.answer_probability(told, self.weights)
        kind = self.kinds.has_answer(asked.vector)
        told = confidence.evidence(structure, near, cover, texts, kind)
        return confidence.answer_probability(told, self.weights) * self.kinds.about(
            float(near.max())
        )

    def _age(self, found: Candidates, options: SearchOptions) -> None:
        """Multiply the scores by the factors of age and importance, and sort by the result."""
        if options.recency and options.today is not None and "dated" not in found.partial:
            ages = self.corpus.ages(found.slots, options.today)
            found.partial["decay"] = fusion.age_factors(
                ages, options.half_life_days, options.recency_floor
            )
            found.score = found.score * found.partial["decay"]
        if options.importance:
            found.partial["importance"] = self.corpus.importance(found.slots)
            found.score = found.score * found.partial["importance"]
        found.take(np.argsort(-found.score, kind="stable"))

    def _arrange(self, found: Candidates, options: SearchOptions) -> None:
        """Move near copies of better hits down."""
        if options.mmr:
            head = found.slots[:HEAD].tolist()
            likeness = selection.by_terms([self.corpus.term_set(slot) for slot in head])
            order = selection.mmr(found.score[:HEAD], likeness, options.mmr_lambda)
            found.reorder([*order, *range(len(head), len(found.slots))])

    def _renew(self, found: Candidates, asked: CorpusQuery) -> tuple[dict[int, int], bool]:
        """Among units about the same thing move the newest before the others, unless the query
        names days. Return the newer slot by outdated slot, and whether newer units come first.
        """
        if not asked.options.newest_first or asked.window is not None:
            return {}, False
        head = found.slots[: newest.HEAD]
        if self.kinds is not None and asked.vector is not None and self.vectors is not None:
            state = self.kinds.asks_state(asked.vector)
            nearness = self.vectors.near(int(head[0]), head)
        else:
            # The scale of cosines differs between models, so for an unknown model words decide.
            state = None
            likeness = selection.by_terms([self.corpus.term_set(slot) for slot in head.tolist()])
            shared = likeness(0, np.arange(len(head)))
            nearness = 2.0 * shared / (1.0 + shared)  # Dice coefficient: half shared is .5
        days = self.corpus.column("day")[found.slots].tolist()
        for at, slot in enumerate(head.tolist()):
            if self.corpus.column("asks")[slot] or self._is_retold(slot):
                days[at] = min(days[at], 0)  # such a unit is never news, whatever its date
        renewed = newest.newest_first(nearness, days, found.partial["structure"].tolist(), state)
        slots = found.slots.tolist()
        found.reorder(list(renewed.order))
        return {slots[old]: slots[new] for old, new in renewed.newer.items()}, renewed.leads

    def _share(self, found: Candidates, asked: CorpusQuery) -> None:
        """Move bare questions behind answers, and limit the share of transcripts among the first
        hits.
        """
        near = (found.score >= RIVAL * found.score[0]).tolist()
        asks = np.flatnonzero(self.corpus.column("question")[found.slots[:HEAD]])
        if len(asks):
            echoes = np.zeros(len(near), np.bool_)
            echoes[asks] = [
                self._is_echo(slot, asked) and not self._is_answered(slot)
                for slot in found.slots[asks].tolist()
            ]
            found.reorder(selection.answers_first(echoes.tolist(), near))
        source = self.corpus.column("source")[found.slots]
        chatter = source == self.corpus.number(Source.SESSIONS)
        if asked.options.chatter < 1.0 and chatter.any() and not chatter.all():
            order = selection.limit_share(chatter.tolist(), near, asked.options.chatter)
            found.reorder(order)

    def _is_echo(self, slot: int, asked: CorpusQuery) -> bool:
        """Whether a question's terms are hardly more than the query's."""
        terms = self.corpus.term_set(slot)
        weights = self._weights(terms)
        common = terms & {self.corpus.term_id(term) for term, _ in asked.terms}
        return sum(weights[t] for t in common) >= selection.ECHO * sum(weights.values())

    def _is_answered(self, slot: int) -> bool:
        """Whether the unit after a question may hold its answer. The agent's replies do not count,
        since the agent knows only what search finds, too.
        """
        after = int(self.corpus.column("next")[slot])
        if after < 0 or self.corpus.column("question")[after]:
            return False
        asker, speaker = self.corpus.column("speaker")[[slot, after]].tolist()
        is_agent = speaker in self.corpus.speakers(RowRole.ASSISTANT)
        return speaker == NOBODY or (speaker != asker and not is_agent)

    def _is_retold(self, slot: int) -> bool:
        """Whether the unit is the agent's reply to a question, which only repeats what the agent
        found.
        """
        column = self.corpus.column
        agent = self.corpus.speakers(RowRole.ASSISTANT)
        before = slot
        while before >= 0 and int(column("speaker")[before]) in agent:
            before = int(column("previous")[before])
        return before not in {slot, NOBODY} and bool(column("question")[before])

    def _weights(self, numbers: frozenset[int]) -> dict[int, float]:
        """Return the idf weights of terms, by number."""
        known = [number for number in numbers if number >= 0]
        idfs = self.postings.idfs([self.corpus.term(number) for number in known]).tolist()
        return dict.fromkeys(numbers, UNKNOWN) | dict(zip(known, idfs, strict=True))

    def _pack(self, found: Candidates, newer: dict[int, int], options: SearchOptions) -> Ranking:
        kept = found.score >= options.min_score
        if not kept.any():
            return Ranking((), EmptyReason.BELOW_THRESHOLD)
        found.take(np.flatnonzero(kept))
        units = [
            packing.PackedUnit(slot, tokens, before, after, score)
            for slot, score, tokens, before, after in zip(
                found.slots.tolist(),
                found.score.tolist(),
                *(
                    self.corpus.column(n)[found.slots].tolist()
                    for n in ("tokens", "previous", "next")
                ),
                strict=True,
            )
        ]
        horizon = packing.JOIN_TOKENS if options.join else 0
        if options.max_tokens is not None:
            horizon = min(horizon, options.max_tokens)
        groups = packing.join(units, horizon)
        cost = {unit.slot: unit.tokens for unit in units}
        costs = [sum(cost[slot] for slot in group) for group in groups]
        chosen = packing.within(costs, options.max_tokens, options.limit)
        if not chosen:
            return Ranking((), EmptyReason.BUDGET)
        row = {slot: at for at, slot in enumerate(found.slots.tolist())}
        best = [min(row[slot] for slot in groups[at]) for at in chosen]
        hits = (
            Ranked(groups[at], score, costs[at], partial, newer.get(slot))
            for at, slot, score, partial in zip(
                chosen,
                found.slots[best].tolist(),
                found.score[best].tolist(),
                found.explained(best),
                strict=True,
            )
        )
        return Ranking(tuple(hits), None if chosen[0] == 0 else EmptyReason.BUDGET)


def _related_rows(partial: Mapping[str, Floats]) -> NDArray[np.intp]:
    """Return the rows of the candidates that relate to the query: those that contain one of its
    words, or have a neighbour that does, are of its days, or are near in meaning.
    """
    related = (partial["wide_cover"] > 0.0) | (partial["date"] > 0.0)
    for name, least in (("cosine", CHANCE), ("dated", 0.0)):
        if name in partial:
            related |= partial[name] > least
    return np.flatnonzero(related)
