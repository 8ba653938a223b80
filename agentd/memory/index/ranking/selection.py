"""Which hits may stand among the first: no near copies, little chatter, no bare questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Likeness = Callable[
    [int, NDArray[np.intp]], NDArray[np.float32]
]  # of one candidate to others, 0..1


def mmr(
    relevance: NDArray[np.float32], likeness: Likeness, trade: float, most: int | None = None
) -> list[int]:
    """Maximal marginal relevance (Carbonell and Goldstein, 1998), by which near copies of a better hit go
    down: all candidates, or the first `most`, best first; each next one has the most of trade·relevance minus
    (1 - trade)·likeness to those before it. Relevance is scaled to 0..1; the first is always the
    most relevant. Equals keep their order.
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
    """The share of terms that two candidates have in common."""

    def likeness(at: int, others: NDArray[np.intp]) -> NDArray[np.float32]:
        shares = [jaccard(terms[at], terms[other]) for other in others.tolist()]
        return np.asarray(shares, np.float32)

    return likeness


def by_cosine(rows: NDArray[np.float32]) -> Likeness:
    """The cosine of unit rows, at least 0; a row of zeros is like nothing."""
    cosines = np.maximum(rows @ rows.T, 0.0)
    return lambda at, others: cosines[at, others]


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """The share of terms in common; 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


ECHO = 0.8  # of a question's weight is the query's: it was asked before, and says no more
ANSWERS = 3  # units that may be the answer, before which no echo stands


def answers_first(echoes: Sequence[bool], near: Sequence[bool]) -> list[int]:
    """A new order of units given best first: earlier askings of the query (`echoes`) stand behind
    the units that may be its answer (`near` the best and no echo).
    """
    answers = [at for at, n in enumerate(near) if n and not echoes[at]][:ANSWERS]
    if not answers:
        return list(range(len(echoes)))
    last = answers[-1]
    early = [at for at in range(last + 1) if not echoes[at]]
    asked = [at for at in range(last + 1) if echoes[at]]
    return [*early, *asked, *range(last + 1, len(echoes))]


def shared(chatter: Sequence[bool], near: Sequence[bool], share: float) -> list[int]:
    """A new order of units given best first: of the first n at most `share`·n, rounded up, are
    chatter, as long as there are others that are `near` the best.
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
