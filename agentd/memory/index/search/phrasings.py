"""Searches for one question in several phrasings (rewordings, languages), and fuses the
rankings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from agentd.core.search import (
    EmptyReason,
    Ranked,
    Ranking,
    SearchOptions,
)
from agentd.memory.index.ranking import newest, packing
from agentd.memory.index.search.searcher import Searcher

DEPTH = 100  # units that each phrasing proposes
# Added to ranks before their reciprocals are summed. Of 1, 5, 20 and 60 this value is best over two
# years of notes by different authors: what one phrasing finds first outweighs what all of them find
# far down.
RANK = 5
Phrasing = tuple[str, NDArray[np.float32] | None]


def search(searcher: Searcher, asked: Sequence[Phrasing], options: SearchOptions) -> Ranking:
    """Return the best units for a text and its vector, or for several phrasings of the same
    question: ranked for each phrasing, then by the sum of reciprocal ranks.

    A unit appears once, with the score and partial scores of the phrasing in which it scores
    highest. Joining, limit and budget apply to the fused ranking.
    """
    if len(asked) == 1:
        return searcher.search(*asked[0], options)
    wide = replace(options, limit=max(DEPTH, options.limit), max_tokens=None, join=False)
    rankings = [searcher.search(text, vector, wide) for text, vector in asked]
    confidence = max(
        ranking.confidence for ranking in rankings if ranking.hits or not any(rankings)
    )
    hits = _fuse(rankings)
    if _newest_leads(rankings):
        hits = _newest_first(hits)
    if not hits:
        return Ranking((), rankings[0].reason, confidence)
    chosen = tuple(_pack(searcher, hits, options))
    is_best_told = bool(chosen) and hits[0].slots[0] in chosen[0].slots
    return Ranking(chosen, None if is_best_told else EmptyReason.BUDGET, confidence)


def _fuse(rankings: Iterable[Ranking]) -> list[Ranked]:
    """Return every unit once, best first, with its highest score; scores are reassigned in
    descending order.
    """
    worth: dict[int, float] = {}
    best: dict[int, Ranked] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, 1):
            (slot,) = hit.slots
            worth[slot] = worth.get(slot, 0.0) + 1.0 / (RANK + rank)
            known = best.get(slot, hit)
            newer = hit.superseded_by if known.superseded_by is None else known.superseded_by
            best[slot] = replace(max(known, hit, key=_score), superseded_by=newer)
    order = sorted(worth, key=lambda slot: -worth[slot])
    return _rescore([best[slot] for slot in order])


def _newest_leads(rankings: Iterable[Ranking]) -> bool:
    """Whether at least half of the phrasings that find something ask for a present state."""
    told = [ranking.newest_leads for ranking in rankings if ranking.hits]
    return 2 * sum(told) >= len(told)


def _newest_first(hits: Sequence[Ranked]) -> list[Ranked]:
    """Return the hits with outdated ones behind the newer ones."""
    place = {hit.slots[0]: at for at, hit in enumerate(hits)}
    newer = {
        at: place[hit.superseded_by]
        for at, hit in enumerate(hits)
        if hit.superseded_by is not None and hit.superseded_by in place
    }
    return _rescore([hits[at] for at in newest.behind(len(hits), newer)])


def _rescore(hits: Sequence[Ranked]) -> list[Ranked]:
    """Reassign the scores to the hits in this order, in descending order."""
    scores = sorted((hit.score for hit in hits), reverse=True)
    return [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]


def _pack(searcher: Searcher, hits: Sequence[Ranked], options: SearchOptions) -> Iterable[Ranked]:
    """Join neighbours to hits, and yield as many hits as limit and budget allow."""
    by_slot = {hit.slots[0]: hit for hit in hits}
    slots = list(by_slot)
    before, after = (searcher.corpus.column(n)[slots].tolist() for n in ("previous", "next"))
    units = [
        packing.PackedUnit(hit.slots[0], hit.tokens, earlier, later, hit.score)
        for hit, earlier, later in zip(hits, before, after, strict=True)
    ]
    horizon = packing.JOIN_TOKENS if options.join else 0
    if options.max_tokens is not None:
        horizon = min(horizon, options.max_tokens)
    groups = packing.join(units, horizon)
    costs = [sum(by_slot[slot].tokens for slot in group) for group in groups]
    for at in packing.within(costs, options.max_tokens, options.limit):
        best = max((by_slot[slot] for slot in groups[at]), key=_score)
        yield replace(best, slots=groups[at], tokens=costs[at])


def _score(hit: Ranked) -> float:
    return hit.score
