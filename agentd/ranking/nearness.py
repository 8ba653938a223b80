"""How near days are to those that a query names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def fits(first: NDArray[np.int32], last: NDArray[np.int32], window: tuple[int, int]) -> Floats:
    """How well spans of days fit a window, 0..1: what touches it fits fully, what comes a little
    later is likely to tell of it, what comes before less so.
    """
    late = np.maximum(first - window[1], 0).astype(np.float32)
    early = np.maximum(window[0] - last, 0).astype(np.float32)
    near = np.where(late > 0, 0.5 * np.exp(-late / 5.0), 0.25 * np.exp(-early / 3.0))
    return np.where(first < 0, 0.0, np.where((late == 0) & (early == 0), 1.0, near)).astype(
        np.float32
    )
