"""How sure it is that a hit answers, and that any does."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from agentd.memory.index.ranking.fusion import Weights

LEAST = 0.1  # of the best hit's score, what the last one has
SURE = 0.85  # of a unit that is of the days that were asked for, whatever it says
FITS = 0.1  # more, for what it says
ELSE = 0.1  # of the certainty of units of other days
DEPTH = 10  # hits from which the best one should stand out

Floats = NDArray[np.float32]


def certainty(structured: Floats, curve: tuple[float, float]) -> Floats:
    """Structured scores as probabilities that the unit answers, by bias and slope of their log-odds."""
    bias, slope = curve
    return _probability(np.float32(bias) + np.float32(slope) * structured)


def evidence(
    structured: Floats, cosines: Floats | None, cover: Floats, kind: float | None
) -> dict[str, float]:
    """What tells a query with an answer from one without, by the name of its weight: the best score,
    how far the nearest text stands out from the tenth, the widest cover, and what the question itself
    says (`kind`: log-odds that one like it has an answer here; None where nothing is known of that).
    All but the last compare texts with each other, and the best of few always stands out: how near it
    is at all, `Kinds.about` tells.
    """
    found = {"best": float(structured.max()), "cover": float(cover.max())}
    if cosines is not None:
        nearest = np.sort(cosines)[::-1][:DEPTH]
        found["apart"] = float(nearest[0] - nearest[-1])
    if kind is not None:
        found["kind"] = kind
    return found


def answered(found: Mapping[str, float], weights: Weights) -> float:
    """The probability, 0..1, that one of the hits answers, from `evidence`."""
    bias, by_name = weights.confidence[table(found)]
    odds = bias + sum(weight * found[name] for name, weight in by_name.items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))


def table(found: Mapping[str, float]) -> str:
    """The name of the weights for what is known of a query."""
    return "kind" if "kind" in found else "both" if "apart" in found else "keywords"


def scaled(certainties: Floats, confidence: float) -> Floats:
    """Scores of hits: the best one has the confidence of the search, the others a share of it."""
    share = certainties / max(float(certainties.max(initial=0.0)), 1e-9)
    return (np.float32(confidence) * (np.float32(LEAST) + np.float32(1.0 - LEAST) * share)).astype(
        np.float32
    )


def of_days(certainties: Floats, dated: Floats) -> Floats:
    """The certainties of hits where nothing but days was asked for: those of the days are sure, by
    how far they are `dated` then (0..1), others hardly.
    """
    sure = dated * (np.float32(SURE) + np.float32(FITS) * certainties)
    return np.where(dated > 0, sure, np.float32(ELSE) * certainties).astype(np.float32)


def _probability(odds: Floats) -> Floats:
    found = 1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0)))
    return np.asarray(found, np.float32)
