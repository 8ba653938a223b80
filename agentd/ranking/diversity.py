"""Maximal marginal relevance: near copies of a better hit go down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def mmr(relevance: NDArray[np.float32], terms: Sequence[frozenset[int]], trade: float) -> list[int]:
    """All candidates, best first: each next one has the most of trade·relevance minus
    (1 - trade)·likeness to those before it. Relevance is scaled to 0..1, likeness is Jaccard's;
    the first is always the most relevant. Equals keep their order.
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
        if not left.any():
            return order
        for other in np.flatnonzero(left).tolist():
            nearest[other] = max(nearest[other], jaccard(terms[at], terms[other]))
        gain = np.where(left, trade * scaled - (1.0 - trade) * nearest, -np.inf)
        at = int(np.argmax(gain))


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """The share of terms in common; 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
