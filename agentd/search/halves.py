"""Vectors as they are stored: of float16, whose error is far below that of any model. Needs no numpy."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from math import isfinite

from agentd.errors import EmbedderFault

_MOST = 65504.0  # of float16


def packed(vectors: Sequence[bytes]) -> list[bytes]:
    """Vectors of float32, all of one length, as they are stored. Raises EmbedderFault for numbers that
    are none.
    """
    if not vectors:
        return []
    count = len(vectors[0]) // 4
    rows = [struct.unpack(f"<{count}f", vector) for vector in vectors]
    numbers = chain.from_iterable(rows)
    if not all(isfinite(number) and abs(number) <= _MOST for number in numbers):
        raise EmbedderFault("a vector holds what is no number", cure="name another model")
    half = struct.Struct(f"<{count}e")
    return [half.pack(*row) for row in rows]
