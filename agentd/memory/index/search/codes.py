"""Binary codes of vectors: a million are compared with a query in milliseconds.

Each bit says on which side of a random plane a vector lies. The Hamming distance to the query's
code selects the vectors worth a second look; there the query is quantised to four bits for each
plane, which orders the vectors so well that the best ten are hardly ever missing among the first
thousand. The planes depend only on the dimension.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Slots = NDArray[np.int64]
Words = NDArray[np.uint64]

LEAST_BITS, MOST_BITS = 256, 512
LOOKED_AT = 16_384  # vectors that get a second look,
SHARE = 40  # or one in so many of all, if that is more
PLANES = 4  # bits per plane of the quantised query
BLOCK = 8192  # vectors compared at once, sized for a core's cache
_FAR = np.uint16(0xFFFF)


class Codes:
    """The codes of vectors by slot."""

    def __init__(self, dimension: int, words: Words | None = None) -> None:
        """`words` are codes as the method `words` returned them."""
        self._axes = _axes(dimension)
        none: Words = np.zeros((self._axes.shape[1] // 64, 0), np.uint64)
        self._words = none if words is None else words
        # Buffers are kept, because the kernel zeroes the pages of new ones, which costs more than
        # the work.
        shape = (self._axes.shape[1] // 64, BLOCK)
        self._room = (
            np.empty(shape, np.uint64),
            np.empty(shape, np.uint64),
            np.empty(shape, np.uint8),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the codes and of the buffers, spare room included."""
        return self._words.nbytes + sum(room.nbytes for room in self._room)

    def words(self, size: int) -> Words:
        """Return the codes of the slots below `size`."""
        return self._words[:, :size]

    def reserve(self, size: int) -> None:
        """Make room for the slots below `size`."""
        have = self._words.shape[1]
        if size > have:
            words = np.zeros((len(self._words), size), np.uint64)
            words[:, :have] = self._words
            self._words = words

    def put(self, slots: Slots, rows: Floats) -> None:
        """Set the codes of slots; the room must have been reserved."""
        self._words[:, slots] = _pack_signs(rows @ self._axes)

    def nearest(
        self, query: Floats, size: int, wanted: int, usable: NDArray[np.bool_] | None
    ) -> Slots:
        """Return about `wanted` of the slots below `size` that are most likely the nearest; only
        `usable` ones.
        """
        turned = query @ self._axes
        distances = self._distances(_pack_signs(turned[None, :]), size)
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
        """Return the Hamming distance of each slot to the query."""
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
        """Return the dot product of the 4-bit query with the signs of each slot, up to a constant
        factor.
        """
        most = (1 << PLANES) - 1
        reach = max(float(np.abs(turned).max()), 1e-9)
        levels = np.round((turned / reach + 1.0) * (most / 2)).astype(np.uint8)
        planes = [_pack_signs((levels & np.uint8(1 << bit))[None, :]) for bit in range(PLANES)]
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
    """Sum over rows; numpy's own sum is slow for few long rows."""
    sums: NDArray[np.int16] = counts[0].astype(np.int16)
    for row in counts[1:]:
        sums += row
    return sums


def _axes(dimension: int) -> Floats:
    """Return the planes' normals as columns, orthogonal as far as the dimension allows."""
    bits = -(-min(max(dimension, LEAST_BITS), MOST_BITS) // 64) * 64
    random = np.random.default_rng(0)
    columns: list[Floats] = []
    while sum(one.shape[1] for one in columns) < bits:
        square = random.standard_normal((dimension, min(dimension, bits)))
        columns.append(np.linalg.qr(square)[0].astype(np.float32))
    return np.ascontiguousarray(np.concatenate(columns, axis=1)[:, :bits])


def _pack_signs(values: NDArray[np.float32 | np.uint8]) -> Words:
    """Pack the signs of rows into bits: a column of 64-bit words for each row."""
    return np.ascontiguousarray(np.packbits(values > 0, axis=1).view(np.uint64).T)


def _limit(distances: NDArray[np.uint16], wanted: int) -> int:
    """Return the distance within which at least `wanted` slots lie, or all that are usable."""
    counts = np.bincount(np.minimum(distances, MOST_BITS + 1))[: MOST_BITS + 1].cumsum()
    return min(int(counts.searchsorted(wanted)), len(counts) - 1)
