"""Search in memory: legs, gate, fusion, decay, importance, diversity, threshold, token budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentd.domain.index import Entry, StoredChunk
from agentd.domain.memory import Chunk, Source
from agentd.domain.search import EmptyReason, Fusion, Ranked, Ranking, SearchOptions
from agentd.domain.transcript import RowRole
from agentd.ranking import (
    calibration,
    decay,
    diversity,
    fusion,
    gate,
    newest,
    opinions,
    packing,
    shares,
    structured,
)
from agentd.search import words
from agentd.search.candidates import QUIET, Candidates, Proposer
from agentd.search.corpus import NOBODY, Corpus
from agentd.search.entries import entry, head_size
from agentd.search.evidence import Asked, Gatherer
from agentd.search.postings import Floats, Postings, Slots
from agentd.search.spelling import Spelling
from agentd.search.vectors import Vectors

HEAD = 30  # units that are compared with each other: for diversity, and for newer values
RIVAL = 0.2  # of the best score: below that a unit is no answer, and no rival of one
SHORT = 40  # tokens of a unit that says one thing only
MENDED = 0.6  # of a query in one unit: its unknown words were misspelt, and not others or foreign
FEW = 100  # units of which the nearest tells nothing about whether a topic is spoken of
UNKNOWN = 8.0  # weight of a term that no unit holds
CHANCE = 0.25  # cosines below that are those of texts about different things
TAIL = 300  # units of which hits are made


class Searcher:
    """Units by slot, searched. A change must not run beside a search, nor two changes at once."""

    def __init__(self, dimension: int = 0) -> None:
        self.corpus = Corpus()
        self.postings = Postings()
        self.vectors = Vectors(dimension) if dimension else None
        self.spelling = Spelling()
        self._proposer = Proposer(self.corpus, self.postings, self.spelling)
        self._gatherer = Gatherer(self.corpus, self.postings)

    def __len__(self) -> int:
        """How many units can be found."""
        return len(self.postings)

    def add(self, units: Sequence[Chunk], vectors: NDArray[np.float32] | None = None) -> list[int]:
        """Add units, with the vectors of their texts if these are known; gives their slots."""
        slots = self.add_entries([entry(unit) for unit in units])
        if vectors is not None:
            self.set_vectors(slots, vectors)
        return slots

    def add_entries(self, entries: Sequence[Entry | StoredChunk]) -> list[int]:
        """Add units that have been read by the present rules; gives their slots."""
        written: dict[str, None] = {}  # in the same order at every start
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
        """Forget units. Their slots are not used again."""
        self.corpus.remove(slots)
        self.postings.remove(slots)
        if self.vectors is not None:
            self.vectors.remove(slots)

    def search(
        self, query: str, vector: NDArray[np.float32] | None, options: SearchOptions
    ) -> Ranking:
        """The best units for any text; `vector` is None when there is no vector leg."""
        if not len(self):
            return Ranking((), EmptyReason.NOTHING_INDEXED)
        if not query.strip():
            return Ranking((), EmptyReason.EMPTY_QUERY)
        asked = self._proposer.asked(query, self._usable(vector), options)
        found = self._proposer.propose(asked, self.vectors)
        if not len(found.slots) or _is_chance(found):
            return Ranking((), EmptyReason.NO_MATCH)
        self._fuse(found, asked)
        self._age(found, options)
        self._listen(found, asked)
        self._arrange(found, options)
        newer = self._renew(found, asked)
        self._share(found, asked)
        if len(self) >= FEW and "dated" not in found.partial:
            _calibrate(found)
        return self._pack(found, newer, options)

    def features(
        self, query: str, vector: NDArray[np.float32] | None, options: SearchOptions
    ) -> tuple[Slots, dict[str, Floats]]:
        """The candidates for a text, and what structured fusion looks at of each, by name."""
        asked = self._proposer.asked(query, self._usable(vector), options)
        slots = self._proposer.propose(asked, self.vectors).slots
        return slots, structured.features(self._gatherer.evidence(asked, slots, self.vectors))

    def _usable(self, vector: NDArray[np.float32] | None) -> Floats | None:
        if vector is None or self.vectors is None or not len(self.vectors):
            return None
        vector = np.asarray(vector, np.float32)
        if vector.shape != (self.vectors.dimension,) or not np.isfinite(vector).all():
            return None
        return vector if vector.any() else None

    def _fuse(self, found: Candidates, asked: Asked) -> None:
        """Score the candidates, best first: relative to the best, times how sure that one is."""
        options = asked.options
        evidence = self._gatherer.evidence(asked, found.slots, self.vectors)
        columns = structured.features(evidence)
        legs = [found.partial[name] for name in ("keyword", "vector") if name in found.partial]
        trust = (1.0, 1.0)
        if options.gate:
            known = evidence.idf[evidence.idf > 0]
            exact = float(evidence.exact.max(initial=0.0))
            trust = gate.trust(known, len(self), exact, vectors=len(legs) > 1)
        structure = structured.score(columns)
        sure = calibration.certainty(structure, vectors="meaning" in columns)
        if options.fusion is Fusion.STRUCTURED:
            fused = structure
        elif options.fusion is Fusion.RRF:
            fused = fusion.rrf(legs, trust[: len(legs)])
        else:
            weights = (options.text_weight * trust[0], options.vector_weight * trust[1])
            fused = fusion.weighted([fusion.scaled(leg) for leg in legs], weights[: len(legs)])
        found.partial |= {"fused": fused, "certainty": sure, **columns}
        found.score = sure
        if options.fusion is not Fusion.STRUCTURED:
            found.score = fused / max(float(fused.max()), 1e-9) * sure.max()
        if "dated" in found.partial:
            found.score = calibration.of_days(found.score, found.partial["dated"])
        order = np.argsort(-found.score, kind="stable")
        source = self.corpus.column("source")[found.slots[order[TAIL:]]]
        quiet = order[TAIL:][source != self.corpus.number(Source.SESSIONS)][:QUIET]
        found.take(np.concatenate([order[:TAIL], quiet]))

    def _age(self, found: Candidates, options: SearchOptions) -> None:
        """Let age and importance weigh on the scores."""
        if options.recency and options.today is not None and "dated" not in found.partial:
            ages = self.corpus.ages(found.slots, options.today)
            found.partial["decay"] = decay.factors(
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
            likeness = diversity.by_terms([self.corpus.term_set(slot) for slot in head])
            order = diversity.mmr(found.score[:HEAD], likeness, options.mmr_lambda)
            found.reorder([*order, *range(len(head), len(found.slots))])

    def _listen(self, found: Candidates, asked: Asked) -> None:
        """Let the vector leg speak among the first."""
        if asked.options.fusion is Fusion.STRUCTURED and "meaning" in found.partial:
            guessed = any(weight < 1.0 for _, weight in asked.terms)
            mended = guessed and bool(found.partial["cover"].max() >= MENDED)
            found_exactly = bool(found.partial["exact"].max() > 0)
            settled = mended or found_exactly or asked.window is not None
            order = opinions.heard(
                *(found.partial[name] for name in ("meaning", "cover", "question")), settled=settled
            )
            found.reorder(order)

    def _renew(self, found: Candidates, asked: Asked) -> dict[int, int]:
        """Move the newest of units that say different values of the same thing before the others,
        unless the query asks for the past. Gives the slot that supersedes, by slot.
        """
        if not asked.options.newest_first or asked.query.asks_past or asked.window is not None:
            return {}
        column = self.corpus.column
        near = found.score >= RIVAL * found.score[0]
        head = found.slots[:HEAD][near[:HEAD]].tolist()
        units = [
            newest.Said(
                self.corpus.term_set(slot),
                day,
                tokens <= SHORT,
                bool(question),
                bool(figures),
                self._is_retold(slot),
            )
            for slot, day, tokens, question, figures in zip(
                head,
                *(column(n)[head].tolist() for n in ("day", "tokens", "question", "figures")),
                strict=True,
            )
        ]
        terms = frozenset(self.corpus.term_id(term) for term, _ in asked.terms)
        weights = self._weights(terms.union(*(unit.terms for unit in units)))
        newer = newest.outdated(units, terms, weights)
        later = newest.successors(units, terms, weights, newer)
        places = np.flatnonzero(near[:HEAD])
        order = np.arange(len(found.slots))
        order[places] = places[newest.newest_first(len(head), newer, later)]
        found.reorder(order.tolist())
        return {head[old]: head[new] for old, new in newer.items()}

    def _share(self, found: Candidates, asked: Asked) -> None:
        """Let no bare asking stand before an answer, and no chatter drown what was written down."""
        near = (found.score >= RIVAL * found.score[0]).tolist()
        asks = np.flatnonzero(self.corpus.column("question")[found.slots[:HEAD]])
        if len(asks):
            echoes = np.zeros(len(near), np.bool_)
            echoes[asks] = [
                self._is_echo(slot, asked) and not self._is_answered(slot)
                for slot in found.slots[asks].tolist()
            ]
            found.reorder(shares.answers_first(echoes.tolist(), near))
        source = self.corpus.column("source")[found.slots]
        chatter = source == self.corpus.number(Source.SESSIONS)
        if asked.options.chatter < 1.0 and chatter.any() and not chatter.all():
            order = shares.shared(chatter.tolist(), near, asked.options.chatter)
            found.reorder(order)

    def _is_echo(self, slot: int, asked: Asked) -> bool:
        """Whether what a question says is little more than the query."""
        terms = self.corpus.term_set(slot)
        weights = self._weights(terms)
        common = terms & {self.corpus.term_id(term) for term, _ in asked.terms}
        return sum(weights[t] for t in common) >= shares.ECHO * sum(weights.values())

    def _is_answered(self, slot: int) -> bool:
        """Whether what stands behind a question may be where its answer was told: the agent's replies
        are not, as it knows no more than what else is found.
        """
        after = int(self.corpus.column("next")[slot])
        if after < 0 or self.corpus.column("question")[after]:
            return False
        asker, speaker = self.corpus.column("speaker")[[slot, after]].tolist()
        is_agent = speaker in self.corpus.speakers(RowRole.ASSISTANT)
        return speaker == NOBODY or (speaker != asker and not is_agent)

    def _is_retold(self, slot: int) -> bool:
        """Whether the agent says it in reply to a question: it tells again what it has found."""
        column = self.corpus.column
        agent = self.corpus.speakers(RowRole.ASSISTANT)
        before = slot
        while before >= 0 and int(column("speaker")[before]) in agent:
            before = int(column("previous")[before])
        return before not in {slot, NOBODY} and bool(column("question")[before])

    def _weights(self, numbers: frozenset[int]) -> dict[int, float]:
        """How much terms weigh, by number."""
        known = [number for number in numbers if number >= 0]
        idfs = self.postings.idfs([self.corpus.term(number) for number in known]).tolist()
        return dict.fromkeys(numbers, UNKNOWN) | dict(zip(known, idfs, strict=True))

    def _pack(self, found: Candidates, newer: dict[int, int], options: SearchOptions) -> Ranking:
        kept = found.score >= options.min_score
        if not kept.any():
            return Ranking((), EmptyReason.BELOW_THRESHOLD)
        found.take(np.flatnonzero(kept))
        units = [
            packing.Unit(slot, tokens, before, after)
            for slot, tokens, before, after in zip(
                found.slots.tolist(),
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
        return Ranking(
            tuple(
                Ranked(groups[at], score, costs[at], partial, newer.get(slot))
                for at, slot, score, partial in zip(
                    chosen,
                    found.slots[best].tolist(),
                    found.score[best].tolist(),
                    found.explained(best),
                    strict=True,
                )
            )
        )


def _calibrate(found: Candidates) -> None:
    """Scale the scores by how likely it is that the topic of the query is spoken of at all."""
    if "meaning" in found.partial:
        near, held = (float(found.partial[n].max()) for n in ("cosine", "wide_cover"))
        found.score = calibration.known(found.score, near, held)


def _is_chance(found: Candidates) -> bool:
    """Whether no unit holds a word of the query or is of its days, and none comes near its meaning."""
    if "dated" in found.partial:
        return False
    near = found.partial.get("vector")
    is_held = bool((found.partial["keyword"] > 0.0).any())
    return not is_held and (near is None or float(near.max()) < CHANCE)
