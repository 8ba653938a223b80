"""Which hits may be among the first: no near copies, few transcripts, no bare questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Likeness = Callable[
    [int, NDArray[np.intp]], NDArray[np.float32]
]  # similarity of one candidate to others, 0..1


def mmr(
    relevance: NDArray[np.float32], likeness: Likeness, trade: float, most: int | None = None
) -> list[int]:
    """Maximal marginal relevance (Carbonell and Goldstein, 1998): order all candidates, or the
    first `most`, so that near copies of a better hit move down. Each next candidate maximises
    trade·relevance - (1 - trade)·similarity to those before it.

    Relevance is scaled to 0..1; the most relevant comes first. Equals keep their order.
    """
    if not len(relevance):
        return []
    trade = min(1.0, max(0.0, trade))
    low, high = float(relevance.min()), float(relevance.max())
    scaled = (relevance - low) / (high - low) if high > low else np.ones_like(relevance)
    nearest = np.zeros(len(relevance), np.float32)
    left = np.ones(len(relevance), np.bool_)
    order: list[int] = []
    at = int(np.argmax(scaled))
    while True:
        order.append(at)
        left[at] = False
        others = np.flatnonzero(left)
        if not len(others) or len(order) == most:
            return order
        nearest[others] = np.maximum(nearest[others], likeness(at, others))
        gain = np.where(left, trade * scaled - (1.0 - trade) * nearest, -np.inf)
        at = int(np.argmax(gain))


def by_terms(terms: Sequence[frozenset[int]]) -> Likeness:
    """Return a similarity: the Jaccard index of the candidates' terms."""

    def likeness(at: int, others: NDArray[np.intp]) -> NDArray[np.float32]:
        shares = [jaccard(terms[at], terms[other]) for other in others.tolist()]
        return np.asarray(shares, np.float32)

    return likeness


def by_cosine(rows: NDArray[np.float32]) -> Likeness:
    """Return a similarity: the cosine of unit rows, at least 0; a row of zeros resembles
    nothing.
    """
    cosines = np.maximum(rows @ rows.T, 0.0)
    return lambda at, others: cosines[at, others]


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the Jaccard index of two sets; 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


ECHO = 0.8  # a question repeats the query if this share of its term weight is the query's
ANSWERS = 3  # possible answers that come before all echoes


def answers_first(echoes: Sequence[bool], near: Sequence[bool]) -> list[int]:
    """Return a new order of units given best first: earlier askings of the query (`echoes`) move
    behind the units that may be its answer (those that are `near` the best and no echo).
    """
    answers = [at for at, n in enumerate(near) if n and not echoes[at]][:ANSWERS]
    if not answers:
        return list(range(len(echoes)))
    last = answers[-1]
    early = [at for at in range(last + 1) if not echoes[at]]
    asked = [at for at in range(last + 1) if echoes[at]]
    return [*early, *asked, *range(last + 1, len(echoes))]


def limit_share(chatter: Sequence[bool], near: Sequence[bool], share: float) -> list[int]:
    """Return a new order of units given best first: of the first n at most `share`·n, rounded up,
    are chatter (from transcripts), as long as there are others that are `near` the best.
    """
    others = [at for at, one in enumerate(chatter) if not one and near[at]]
    order: list[int] = []
    placed: set[int] = set()
    talk = 0
    rest = iter(others)
    behind = next(rest, None)
    for at, one in enumerate(chatter):
        if at in placed:
            continue
        while one and behind is not None and talk + 1 > _ceiling(share * (len(order) + 1)):
            if behind > at:
                order.append(behind)
                placed.add(behind)
            behind = next(rest, None)
        order.append(at)
        placed.add(at)
        talk += one
    return order


def _ceiling(value: float) -> int:
    return -int(-value // 1)
