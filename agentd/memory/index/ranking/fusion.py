"""Combines the scores of several retrievers, by weights, ranks or trust; and temporal decay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Weights(Struct, frozen=True):
    """The weights of ranking, fitted by `python -m benchmarks.fit`. `structured.features` and
    `confidence.evidence` define the features; docs/retrieval.md reports each fit's results on the
    collection that it did not see.

    `structured`: feature weights for searches with (`both`) and without (`keywords`) vectors.
    `certainty`: for the same two, bias and slope of the log-odds that a unit with a structured
    score answers. `confidence`: bias and weights of the log-odds that a query has an answer at all,
    by the features known.
    """

    structured: Mapping[str, Mapping[str, float]]
    certainty: Mapping[str, tuple[float, float]]
    confidence: Mapping[str, tuple[float, Mapping[str, float]]]


FITTED = Weights(
    structured={
        "both": {
            "nearness": 1.26, "nearness_covered": -0.86, "nearness_around": 0.71, "keyword": -2.91,
            "cover": 5.49, "wide_cover": 3.32, "answers": 2.52, "asks": -4.44, "date": 4.93,
            "exact": 1.35,
        },
        "keywords": {
            "keyword": 2.58, "cover": 2.54, "wide_cover": 4.99, "answers": 2.63, "asks": -2.42,
            "date": 4.9, "exact": 0.86,
        },
    },
    certainty={"both": (-2.24, 0.32), "keywords": (-2.85, 0.33)},
    confidence={
        "kind": (2.19, {"best": 0.34, "chance": -0.49, "kind": 1.78}),
        "both": (-2.62, {"best": 0.2, "cover": 2.4, "apart": 6.73}),
        "keywords": (-2.44, {"best": 0.25, "cover": 2.94}),
    },
)  # fmt: skip


Floats = NDArray[np.float32]

RRF_K = 60


def rrf(retrieved: Sequence[Floats], trust: Sequence[float]) -> Floats:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): return for each candidate the
    sum of trust/(60 + rank), ranks from 1, over the retrievers that found it.

    A retriever gives each candidate a score, `-inf` where it did not find it; equal scores share a
    rank. Trusts are scaled so that the highest is 1: first in two trusted retrievers is 2/61.
    """
    most = max(trust, default=0.0) or 1.0
    total = np.zeros(len(retrieved[0]) if retrieved else 0, np.float32)
    for scores, weight in zip(retrieved, trust, strict=True):
        found = np.isfinite(scores)
        ranks = np.searchsorted(np.sort(-scores[found]), -scores[found]) + 1
        total[found] += weight / most / (RRF_K + ranks)
    return total


def weighted_mean(retrieved: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return the weighted mean of scores that are already scaled to 0..1; `-inf`, where a retriever
    did not find a candidate, counts as 0. Weights need not sum to 1.
    """
    whole = sum(weights)
    total = np.zeros(len(retrieved[0]) if retrieved else 0, np.float32)
    for scores, weight in zip(retrieved, weights, strict=True):
        share = weight / whole if whole > 0 else 1.0 / len(weights)
        total += np.float32(share) * np.where(np.isfinite(scores), scores, np.float32(0.0))
    return total


def share_of_best(scores: Floats) -> Floats:
    """Return scores as shares of the best score, at least 0. They are not stretched to 0 at the
    weakest, so that the weakest of good matches keeps its value.
    """
    found = np.isfinite(scores)
    high = float(scores[found].max(initial=0.0))
    if high <= 0.0:
        return np.where(found, np.float32(0.0), scores)
    return np.where(found, np.clip(scores / high, 0.0, 1.0), scores).astype(np.float32)


def age_factors(
    ages: NDArray[np.float32], half_life_days: float, floor: float
) -> NDArray[np.float32]:
    """Temporal decay: return the factors for scores of these ages (days; NaN for evergreen), from 1
    down to `floor`. The future counts as today; a half-life that is not positive means no decay.
    """
    if not (half_life_days > 0 and math.isfinite(half_life_days)):
        return np.ones(len(ages), np.float32)
    floor = min(1.0, max(0.0, floor))
    fresh = np.exp2(-np.maximum(np.nan_to_num(ages, nan=0.0), 0.0) / half_life_days)
    return (floor + (1.0 - floor) * fresh).astype(np.float32)


LEAST = 0.15  # least trust, since the other retriever may find nothing either


def trust(
    idf: NDArray[np.float32], units: int, exact: float, *, vectors: bool
) -> tuple[float, float]:
    """Return the trust in the keyword retriever and in the vector retriever, each 0.15..1, for one
    query.

    `idf` holds the idf of the query's terms that occur in some unit; `exact` is the share of the
    query's quoted phrases and identifiers that the best candidate holds. Terms in every tenth unit
    do not discriminate; an identifier that was found decides.
    """
    if not vectors:
        return 1.0, 0.0
    if not len(idf):
        return LEAST, 1.0
    common, rare = np.log(10.0), np.log(max(units, 100) / 3.0)
    keyword = float(np.clip((idf.max() - common) / max(rare - common, 0.1), LEAST, 1.0))
    return max(keyword, float(exact)), float(np.clip(1.0 - exact, LEAST, 1.0))
