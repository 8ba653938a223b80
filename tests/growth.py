"""How the time of some work grows with its input: what fast and slow machines agree on."""

from __future__ import annotations

import time
from collections.abc import Callable

QUADRATIC = (
    8.0  # between work in proportion to its input, whose growth is 4, and quadratic work: 16
)
_ROUNDS = 5


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times the processor time of `work(size)` the work of four times the size takes, the
    best of several tries of each. Some milliseconds for the smaller make it reliable.
    """
    tries = [(_seconds(work, size), _seconds(work, 4 * size)) for _ in range(_ROUNDS)]
    return min(large for _, large in tries) / min(small for small, _ in tries)


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    work(size)
    return time.process_time() - began
