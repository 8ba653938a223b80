"""Maximal marginal relevance: near copies of a better hit go down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Likeness = Callable[
    [int, NDArray[np.intp]], NDArray[np.float32]
]  # of one candidate to others, 0..1


def mmr(relevance: NDArray[np.float32], likeness: Likeness, trade: float) -> list[int]:
    """All candidates, best first: each next one has the most of trade·relevance minus
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
        if not len(others):
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
