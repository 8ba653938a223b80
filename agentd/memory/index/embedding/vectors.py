"""Vectors as bytes: checked, and brought to length 1, without numpy."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence

from agentd.core.errors import EmbedderFault

_UNIT = 1e-3  # how far from 1 a length may be before the vector is scaled


def rows(body: bytes, count: int, dimension: int, model: str) -> list[bytes]:
    """The vectors of an answer of little-endian float32. Raises EmbedderFault if they are not
    `count` of that dimension, or not all numbers are finite.
    """
    if len(body) != 4 * count * dimension:
        raise wrong_size(model, len(body) // 4 // max(1, count), dimension)
    return [unit(_read(body[at : at + 4 * dimension]), model) for at in _starts(count, dimension)]


def unit(numbers: array[float] | Sequence[float], model: str) -> bytes:
    """A vector of length 1, or of zeros alone. Raises EmbedderFault for what is not finite."""
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
    """The error for vectors of another dimension than the one in that table of the configuration."""
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
    """Little-endian, whatever the machine is."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
