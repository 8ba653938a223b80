"""Two legs' scores made one, by ranks or by scaled scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

RRF_K = 60


def rrf(legs: Sequence[Floats], trust: Sequence[float]) -> Floats:
    """Reciprocal rank fusion: the sum of trust/(60 + rank), ranks from 1, over the legs that found
    a candidate. A leg gives each candidate a score, `-inf` where it did not find it; equal scores
    share a rank. Trusts are scaled so that the highest is 1: first in two trusted legs is 2/61.
    """
    most = max(trust, default=0.0) or 1.0
    total = np.zeros(len(legs[0]) if legs else 0, np.float32)
    for scores, weight in zip(legs, trust, strict=True):
        found = np.isfinite(scores)
        ranks = np.searchsorted(np.sort(-scores[found]), -scores[found]) + 1
        total[found] += weight / most / (RRF_K + ranks)
    return total


def weighted(legs: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """The weighted mean of scores already scaled to 0..1, over the legs there are; `-inf`, where a
    leg did not find a candidate, counts as 0. Weights need not sum to 1.
    """
    whole = sum(weights)
    total = np.zeros(len(legs[0]) if legs else 0, np.float32)
    for scores, weight in zip(legs, weights, strict=True):
        share = weight / whole if whole > 0 else 1.0 / len(weights)
        total += np.float32(share) * np.where(np.isfinite(scores), scores, np.float32(0.0))
    return total


def scaled(scores: Floats) -> Floats:
    """Scores as shares of the best one, 0 at the least: the weakest of good matches keeps its worth."""
    found = np.isfinite(scores)
    high = float(scores[found].max(initial=0.0))
    if high <= 0.0:
        return np.where(found, np.float32(0.0), scores)
    return np.where(found, np.clip(scores / high, 0.0, 1.0), scores).astype(np.float32)
