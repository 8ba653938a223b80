"""Calibrated certainties: how likely a hit answers the query, and how likely any hit does."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from agentd.memory.index.ranking.fusion import Weights

LEAST = 0.1  # share of the best hit's score that the last hit has at least
SURE = 0.85  # certainty of a unit from the days asked for, whatever it says
FITS = 0.1  # how much more its text can add
ELSE = 0.1  # factor for the certainty of units of other days
DEPTH = 10  # number of nearest texts from which the best should stand out

Floats = NDArray[np.float32]


def certainty(structured: Floats, curve: tuple[float, float]) -> Floats:
    """Turn structured scores into probabilities that the unit answers; `curve` is bias and slope of
    their log-odds.
    """
    bias, slope = curve
    return _probability(np.float32(bias) + np.float32(slope) * structured)


def evidence(
    structured: Floats, cosines: Floats | None, cover: Floats, texts: int, kind: float | None
) -> dict[str, float]:
    """Return the features that tell a query with an answer from one without, by the names of their
    weights: the best score, the widest cover, `chance`, how far the nearest text stands out from
    the tenth, and `kind`, the log-odds that a question like this has an answer (None if not known).

    The best of many scores is high by chance, and grows with the logarithm of their number; so
    `chance` is that of the number of `texts` that were searched. `KindClassifiers.about` judges how
    near the nearest text is absolutely.
    """
    found = {
        "best": float(structured.max()),
        "cover": float(cover.max()),
        "chance": math.log(max(texts, 1)),
    }
    if cosines is not None:
        nearest = np.sort(cosines)[::-1][:DEPTH]
        found["apart"] = float(nearest[0] - nearest[-1])
    if kind is not None:
        found["kind"] = kind
    return found


def answer_probability(found: Mapping[str, float], weights: Weights) -> float:
    """Return the probability, 0..1, that one of the hits answers, given `evidence`."""
    bias, by_name = weights.confidence[table(found)]
    odds = bias + sum(weight * found[name] for name, weight in by_name.items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))


def table(found: Mapping[str, float]) -> str:
    """Return the name of the set of weights that fits the features known of a query."""
    return "kind" if "kind" in found else "both" if "apart" in found else "keywords"


def scale_scores(certainties: Floats, confidence: float) -> Floats:
    """Scale the scores of hits: the best hit gets the confidence of the search, each other one a
    share of that.
    """
    share = certainties / max(float(certainties.max(initial=0.0)), 1e-9)
    return (np.float32(confidence) * (np.float32(LEAST) + np.float32(1.0 - LEAST) * share)).astype(
        np.float32
    )


def of_days(certainties: Floats, dated: Floats) -> Floats:
    """Return the certainties of hits for a query that asks only for days: units of those days are
    near certain, weighted by `dated` (0..1), others hardly count.
    """
    sure = dated * (np.float32(SURE) + np.float32(FITS) * certainties)
    return np.where(dated > 0, sure, np.float32(ELSE) * certainties).astype(np.float32)


def _probability(odds: Floats) -> Floats:
    found = 1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0)))
    return np.asarray(found, np.float32)
