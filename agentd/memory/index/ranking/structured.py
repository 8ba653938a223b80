"""Structured fusion: scores a unit by its own words and meaning, and by its neighbours.

Every feature is computed within one query and comparable between collections: shares of the query,
or distances from the other candidates, never raw scores of a retriever. The query determines the
weight of words: `nearness_covered` takes from meaning in proportion to the query's words that the
best candidate holds, so that a query whose rare words occur nowhere is ranked by meaning alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

DEPTH = 200  # nearest candidates, by whose cosines meaning is scaled
SPREAD = 0.02  # least standard deviation of the cosines: closer candidates mean the same
FARTHEST = np.float32(-4.0)  # lowest nearness, in standard deviations


class RankingEvidence(Struct, frozen=True):
    """The features' inputs for n candidates, each with `reach` neighbours on both sides (w =
    2·reach+1 columns, the candidate in the middle). Missing neighbours have zeros.
    """

    impacts: Floats  # n × w × t: BM25 that each of t query terms adds
    idf: Floats  # t
    cosines: Floats | None  # n × w; None without a vector retriever
    question: Flags  # n × w: whether the text ends with a question mark
    asks: Flags  # n: whether the text consists of questions
    spoken: Flags  # n: whether it has a speaker, in a conversation
    date: Floats  # n: 0..1, how well the unit's day fits the time that the query names
    exact: Floats  # n: share of the query's quoted phrases and identifiers that it holds


def score(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return the weighted sum of features."""
    table = np.stack([columns[name] for name in weights])
    return np.array(list(weights.values()), np.float32) @ table


def features(e: RankingEvidence) -> dict[str, Floats]:
    """Return every feature of every candidate, by the name of its weight.

    `cover` and `wide_cover` are idf-weighted shares of the query's terms in the unit itself and in
    the units around it; `keyword` is BM25 as a share of the best candidate's; `nearness` is the
    cosine in standard deviations of the nearest candidates; `answers` is how well a question just
    before the unit fits the query.
    """
    middle = e.impacts.shape[1] // 2
    own = e.impacts[:, middle] > 0
    bm25 = e.impacts.sum(axis=2)
    words = np.minimum(bm25 / _most(bm25[:, middle]), 1.0)
    idf = e.idf / _most(e.idf.sum(keepdims=True))
    out = {
        "keyword": words[:, middle],
        "cover": (own * idf).sum(axis=1),
        "wide_cover": ((e.impacts > 0).any(axis=1) * idf).sum(axis=1),
        "date": e.date,
        "exact": e.exact,
        "asks": e.asks,
    }
    fits = words
    if e.cosines is not None:
        covered = out["cover"].max(initial=0.0)
        meaning = _scale(e.cosines, middle)
        fits = covered * words + (1.0 - covered) * meaning
        out["cosine"] = e.cosines[:, middle]
        out["nearness"] = _nearness(e.cosines[:, middle])
        out["nearness_covered"] = out["nearness"] * covered
        out["nearness_around"] = (
            np.maximum(meaning[:, middle - 1], meaning[:, middle + 1]) * e.spoken
        )
        out["meaning"] = meaning[:, middle]
    out["answers"] = fits[:, middle - 1] * e.question[:, middle - 1]
    return {name: np.asarray(column, np.float32) for name, column in out.items()}


def _nearness(cosines: Floats) -> Floats:
    """Return the distances of the cosines from the mean of the nearest 200, in standard
    deviations.
    """
    nearest = np.sort(cosines)[::-1][:DEPTH]
    if not len(nearest):
        return cosines
    spread = max(float(nearest.std()), SPREAD)
    scaled: Floats = (cosines - nearest.mean()) / np.float32(spread)
    return np.maximum(scaled, FARTHEST)


def _scale(cosines: Floats, middle: int) -> Floats:
    """Return the cosines scaled so that the best candidate has 1 and the 200th has 0."""
    ranked = np.sort(cosines[:, middle])[::-1][:DEPTH]
    scaled: Floats = (cosines - ranked[-1:]) / _most(ranked[:1] - ranked[-1:])
    return np.clip(scaled, 0.0, 1.0)


def _most(values: Floats) -> np.float32:
    """Return the highest value, bounded below so that it can be a divisor."""
    return np.float32(max(float(values.max(initial=0.0)), 1e-6))
