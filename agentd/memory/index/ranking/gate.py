"""How far each leg can be trusted for one query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST = 0.15  # a leg is never silenced: the other may know nothing either


def trust(
    idf: NDArray[np.float32], units: int, exact: float, *, vectors: bool
) -> tuple[float, float]:
    """Trust in the keyword leg and in the vector leg, each 0.15..1.

    `idf` is that of the query's terms which some unit holds; `exact` the share of the query's
    quoted phrases and identifiers that the best candidate holds. Keywords that stand in every
    tenth unit tell nothing apart; an identifier that was found is what was asked for.
    """
    if not vectors:
        return 1.0, 0.0
    if not len(idf):
        return LEAST, 1.0
    common, rare = np.log(10.0), np.log(max(units, 100) / 3.0)
    keyword = float(np.clip((idf.max() - common) / max(rare - common, 0.1), LEAST, 1.0))
    return max(keyword, float(exact)), float(np.clip(1.0 - exact, LEAST, 1.0))
