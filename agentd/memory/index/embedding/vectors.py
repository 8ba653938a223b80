"""Vectors as bytes: checked, and scaled to length 1, without numpy."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence

from agentd.core.errors import EmbedderFault

_UNIT = 1e-3  # largest deviation of a length from 1 for which the vector is not scaled


def rows(body: bytes, count: int, dimension: int, model: str) -> list[bytes]:
    """Split the little-endian float32 of an answer into vectors of length 1. Raises EmbedderFault
    if it does not hold `count` vectors of that dimension, or a number is not finite.
    """
    if len(body) != 4 * count * dimension:
        raise wrong_size(model, len(body) // 4 // max(1, count), dimension)
    return [unit(_read(body[at : at + 4 * dimension]), model) for at in _starts(count, dimension)]


def unit(numbers: array[float] | Sequence[float], model: str) -> bytes:
    """Return a vector scaled to length 1, or zeros unchanged. Raises EmbedderFault for numbers that
    are not finite.
    """
    length = math.hypot(*numbers)
    if not math.isfinite(length):
        raise EmbedderFault(
            f"{model} gave a vector with a number that is not finite.",
            cure="Name another model in [memory_search.embedder].",
        )
    if length and abs(length - 1) > _UNIT:
        numbers = array("f", (number / length for number in numbers))
    vector = numbers if isinstance(numbers, array) else array("f", numbers)
    return _swapped(vector).tobytes()


def wrong_size(
    model: str, found: int, dimension: int, table: str = "[memory_search.embedder]"
) -> EmbedderFault:
    """Return the error for vectors whose dimension is not the configured one; `table` of the
    configuration holds it.
    """
    return EmbedderFault(
        f"{model} gave vectors of {found} numbers, not of {dimension}.",
        cure=f"Set dimension = {found} in {table}.",
    )


def _starts(count: int, dimension: int) -> range:
    return range(0, 4 * count * dimension, 4 * dimension)


def _read(data: bytes) -> array[float]:
    numbers = array("f")
    numbers.frombytes(data)
    return _swapped(numbers)


def _swapped(numbers: array[float]) -> array[float]:
    """Convert between the machine's byte order and little-endian, in place."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
