"""How the time of some work grows with its input: what fast and slow machines agree on."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable

# Between work in proportion to its input, whose growth is 4, and quadratic work: 16.
QUADRATIC = 8.0
_PLAIN = 5.0  # so far from quadratic that more tries would not change it
_FEWEST, _MOST = 2, 5  # tries


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times the processor time of `work(size)` the work of four times the size takes, the
    best of several tries of each. Some milliseconds for the smaller make it reliable.
    """
    small = large = math.inf
    for tries in range(1, _MOST + 1):
        small = min(small, _seconds(work, size))
        large = min(large, _seconds(work, 4 * size))
        if tries >= _FEWEST and large < _PLAIN * small:
            break
    return large / small


def _seconds(work: Callable[[int], object], size: int) -> float:
    # A look for garbage takes as long as all tests before have left objects, as `timeit` knows.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        began = time.process_time()
        work(size)
        return time.process_time() - began
    finally:
        if was_enabled:
            gc.enable()
