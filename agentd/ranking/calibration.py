"""How sure it is that a unit answers: what lets a search say that nothing does."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from agentd.ranking.weights import CERTAINTY, TOPIC

SURE = 0.85  # of a unit that is of the days that were asked for, whatever it says
FITS = 0.1  # more, for what it says
ELSE = 0.1  # of the certainty of units of other days

LEAST = 0.1  # of the certainty that the topic is known, what the last of the hits has

Floats = NDArray[np.float32]


def certainty(structured: Floats, *, vectors: bool) -> Floats:
    """Structured scores as probabilities. They are sums of what a unit has, not of how it compares
    to the other hits, so that the best of bad hits has a low one.
    """
    bias, slope = CERTAINTY["both" if vectors else "keywords"]
    odds: Floats = np.exp(np.float32(bias) + np.float32(slope) * structured)
    return odds / (odds + np.float32(1.0))


def known(certainties: Floats, cosine: float, cover: float) -> Floats:
    """The certainties of hits, scaled by how likely their best cosine, and the most of the query's
    terms that stand close together, make it that its topic is spoken of at all.
    """
    bias, by_cosine, by_cover = TOPIC
    odds = math.exp(bias + by_cosine * cosine + by_cover * cover)
    scaled: Floats = (LEAST + (1.0 - LEAST) * certainties) * np.float32(odds / (odds + 1.0))
    return scaled


def of_days(certainties: Floats, dated: Floats) -> Floats:
    """The certainties of hits where nothing but days was asked for: those of the days are sure, by
    how far they are `dated` then (0..1), others hardly.
    """
    sure = dated * (np.float32(SURE) + np.float32(FITS) * certainties)
    scaled: Floats = np.where(dated > 0, sure, np.float32(ELSE) * certainties)
    return scaled
