"""Temporal decay: what is old counts a little less."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def factors(ages: NDArray[np.float32], half_life_days: float, floor: float) -> NDArray[np.float32]:
    """What scores of these ages (days; NaN for evergreen) are multiplied with: from 1 down to
    `floor`. The future counts as today; a half-life that is not positive means no decay.
    """
    if not (half_life_days > 0 and math.isfinite(half_life_days)):
        return np.ones(len(ages), np.float32)
    floor = min(1.0, max(0.0, floor))
    fresh = np.exp2(-np.maximum(np.nan_to_num(ages, nan=0.0), 0.0) / half_life_days)
    return (floor + (1.0 - floor) * fresh).astype(np.float32)
