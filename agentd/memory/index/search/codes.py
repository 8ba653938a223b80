"""Vectors as strings of bits, of which a million are compared with a query in milliseconds.

A bit tells on which side of a random plane a vector lies. How many bits differ from the query's says
which vectors are worth a second look; there the query is known to four bits for each plane, which
orders them so well that the best ten are hardly ever missing among the first thousand. Which planes,
depends on nothing but the dimension.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Slots = NDArray[np.int64]
Words = NDArray[np.uint64]

LEAST_BITS, MOST_BITS = 256, 512
LOOKED_AT = 16_384  # vectors that get a second look, or
SHARE = 40  # of so many vectors one
PLANES = 4  # bits of the query for each plane
BLOCK = 8192  # vectors that are compared at once: what a core's cache holds
_FAR = np.uint16(0xFFFF)


class Codes:
    """The codes of vectors by slot."""

    def __init__(self, dimension: int, words: Words | None = None) -> None:
        """`words` are codes as `words` gave them."""
        self._axes = _axes(dimension)
        none: Words = np.zeros((self._axes.shape[1] // 64, 0), np.uint64)
        self._words = none if words is None else words
        # Kept, as new room costs more than what is done in it: the kernel has to make its pages zero.
        shape = (self._axes.shape[1] // 64, BLOCK)
        self._room = (
            np.empty(shape, np.uint64),
            np.empty(shape, np.uint64),
            np.empty(shape, np.uint8),
        )

    @property
    def nbytes(self) -> int:
        """What the codes and their room to work in hold in memory, unused room included."""
        return self._words.nbytes + sum(room.nbytes for room in self._room)

    def words(self, size: int) -> Words:
        """The codes of the slots below `size`."""
        return self._words[:, :size]

    def reserve(self, size: int) -> None:
        """Make room for the slots below `size`."""
        have = self._words.shape[1]
        if size > have:
            words = np.zeros((len(self._words), size), np.uint64)
            words[:, :have] = self._words
            self._words = words

    def put(self, slots: Slots, rows: Floats) -> None:
        """Set the codes of slots that there is room for."""
        self._words[:, slots] = _packed(rows @ self._axes)

    def nearest(
        self, query: Floats, size: int, wanted: int, usable: NDArray[np.bool_] | None
    ) -> Slots:
        """About `wanted` of the slots below `size`, the likeliest to be nearest; of the `usable`."""
        turned = query @ self._axes
        distances = self._distances(_packed(turned[None, :]), size)
        if usable is not None:
            distances[~usable] = _FAR
        near: Slots = np.flatnonzero(distances <= _limit(distances, max(LOOKED_AT, size // SHARE)))
        if len(near) <= wanted:
            return near
        likeness = self._likeness(turned, near)
        least = np.partition(likeness, len(near) - wanted)[len(near) - wanted]
        likeliest: Slots = near[likeness >= least]
        return likeliest

    def _distances(self, query: Words, size: int) -> NDArray[np.uint16]:
        """How many bits differ, for each slot."""
        out = np.empty(size, np.uint16)
        _, differing, counts = self._room
        for start in range(0, size, BLOCK):
            end = min(start + BLOCK, size)
            width = end - start
            np.bitwise_xor(self._words[:, start:end], query, out=differing[:, :width])
            np.bitwise_count(differing[:, :width], out=counts[:, :width])
            own = out[start:end]
            own[:] = counts[0, :width]
            for row in counts[1:, :width]:
                own += row
        return out

    def _likeness(self, turned: Floats, slots: Slots) -> NDArray[np.int16]:
        """The product of the query and the signs of each slot, to four bits, but for a scale."""
        most = (1 << PLANES) - 1
        reach = max(float(np.abs(turned).max()), 1e-9)
        levels = np.round((turned / reach + 1.0) * (most / 2)).astype(np.uint8)
        planes = [_packed((levels & np.uint8(1 << bit))[None, :]) for bit in range(PLANES)]
        out = np.empty(len(slots), np.int16)
        words, masked, counts = self._room
        for start in range(0, len(slots), BLOCK):
            own = out[start : start + BLOCK]
            width = len(own)
            here, both, ones = words[:, :width], masked[:, :width], counts[:, :width]
            np.take(self._words, slots[start : start + BLOCK], axis=1, out=here, mode="clip")
            own[:] = _sums(np.bitwise_count(here, out=ones))
            own *= -most
            for bit, plane in enumerate(planes):
                np.bitwise_and(here, plane, out=both)
                own += _sums(np.bitwise_count(both, out=ones)) << (bit + 1)
        return out


def _sums(counts: NDArray[np.uint8]) -> NDArray[np.int16]:
    """The sums of columns; a loop over few long rows is what numpy does not do by itself."""
    sums: NDArray[np.int16] = counts[0].astype(np.int16)
    for row in counts[1:]:
        sums += row
    return sums


def _axes(dimension: int) -> Floats:
    """The planes' normals, in columns: at right angles as long as there are enough dimensions."""
    bits = -(-min(max(dimension, LEAST_BITS), MOST_BITS) // 64) * 64
    random = np.random.default_rng(0)
    columns: list[Floats] = []
    while sum(one.shape[1] for one in columns) < bits:
        square = random.standard_normal((dimension, min(dimension, bits)))
        columns.append(np.linalg.qr(square)[0].astype(np.float32))
    return np.ascontiguousarray(np.concatenate(columns, axis=1)[:, :bits])


def _packed(values: NDArray[np.float32 | np.uint8]) -> Words:
    """The signs of rows as bits: a column of words for each row."""
    return np.ascontiguousarray(np.packbits(values > 0, axis=1).view(np.uint64).T)


def _limit(distances: NDArray[np.uint16], wanted: int) -> int:
    """The distance up to which there are at least `wanted`, or all that are not too far."""
    counts = np.bincount(np.minimum(distances, MOST_BITS + 1))[: MOST_BITS + 1].cumsum()
    return min(int(counts.searchsorted(wanted)), len(counts) - 1)
