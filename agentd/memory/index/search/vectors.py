"""The vector retriever: unit vectors, one row per slot, compared with a query by cosine.

Up to EXACT vectors all are compared; beyond that only those that their codes (see `codes.py`)
select, and rows are stored as 16-bit integers, whose rounding error is far below the difference
between two texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from agentd.memory.index.search.arrays import Arrays
from agentd.memory.index.search.codes import Codes
from agentd.memory.index.search.postings import Floats, Slots, best

Rows = NDArray[np.float32 | np.int16]

# Up to so many rows all are compared. Beyond, comparing codes is faster, and 16-bit rows take half
# the room.
EXACT = 30_000
SINGLED_OUT = 1500  # rows that are compared beyond EXACT
# Bytes allocated at once. Pages are committed as they are filled; from 4 MB on numpy asks for huge
# pages, which could waste up to 2 MB.
BLOCK = (4 << 20) - 1
# Rows compared at once. They are copied into a buffer that is kept, because the kernel zeroes the
# pages of new ones, which costs more than the comparison.
AT_ONCE = 128
SLACK = np.float32(1e-6)  # possible difference between a cosine computed in a batch and alone
FINE = np.float32(32767)  # scale of the 16-bit integers


class Vectors:
    """Vectors by slot; a slot without one never matches. Rows are scaled to length 1 and stored in
    blocks of `_block` slots, so that growing moves no row.
    """

    def __init__(self, dimension: int, exact: int = EXACT) -> None:
        self.dimension = dimension
        self._exact = exact
        self._block = max(1, BLOCK // (4 * dimension))
        self._blocks: list[Rows] = []
        self._present = np.zeros(0, np.bool_)
        self._size = 0
        self._count = 0
        self._codes: Codes | None = None
        self._compared: Floats = np.empty((AT_ONCE, dimension), np.float32)
        self._gathered: Rows = self._compared  # a 16-bit buffer if rows are

    def __len__(self) -> int:
        """Return how many slots have a vector."""
        return self._count

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], exact: int = EXACT) -> Self:
        """Build from what `arrays` returned; the rows are not copied."""
        first, codes = arrays["block0"], arrays["codes"]
        vectors = cls(first.shape[1], exact)
        count = sum(name.startswith("block") for name in arrays)
        vectors._blocks = [arrays[f"block{number}"] for number in range(count)]
        vectors._present = arrays["present"].astype(np.bool_)
        vectors._size = len(vectors._present)
        vectors._count = int(np.count_nonzero(vectors._present))
        if first.dtype == np.int16:
            vectors._codes = Codes(first.shape[1], codes)
            vectors._gathered = np.empty_like(vectors._compared, np.int16)
        return vectors

    def arrays(self) -> Arrays:
        """Return the contents as arrays, for `restored`; valid until the next change."""
        codes = (
            np.zeros((0, 0), np.uint64) if self._codes is None else self._codes.words(self._size)
        )
        blocks = {f"block{number}": rows for number, rows in enumerate(self._blocks)}
        return {**blocks, "present": self.present(), "codes": codes}

    def present(self) -> NDArray[np.bool_]:
        """Return a mask of the slots that have a vector, up to the last one that does."""
        return self._present[: self._size]

    @property
    def nbytes(self) -> int:
        """Bytes of rows and codes; reserved room for rows is not counted."""
        codes = 0 if self._codes is None else self._codes.nbytes
        width = self.dimension * np.dtype(self._kind).itemsize
        return self._size * width + self._present.nbytes + codes + self._compared.nbytes

    def put(self, slots: Sequence[int], matrix: NDArray[np.float32]) -> None:
        """Set the vectors of slots. Raises ValueError when the dimension differs."""
        if not len(slots):
            return
        if matrix.shape != (len(slots), self.dimension):
            raise ValueError(f"{matrix.shape} is not {len(slots)} rows of {self.dimension}")
        self._grow(max(slots) + 1)
        at = np.asarray(slots, np.int64)
        rows = unit_rows(matrix)
        if self._codes is None:
            self._set(at, rows)
        else:
            self._set(at, _round(rows))
            self._codes.put(at, rows)
        self._present[at] = True
        self._count = int(np.count_nonzero(self._present))

    def remove(self, slots: Sequence[int]) -> None:
        """Remove vectors."""
        known = [slot for slot in slots if slot < len(self._present)]
        self._present[known] = False
        self._count = int(np.count_nonzero(self._present))

    def scores(self, query: Floats) -> Floats:
        """Return the exact cosine of every slot; -1 where there is no vector."""
        scaled = self._scaled(query)
        cosines = np.empty(self._size, np.float32)
        for number, rows in enumerate(self._blocks):
            own = cosines[number * self._block : (number + 1) * self._block]
            np.matmul(rows[: len(own)].astype(np.float32, copy=False), scaled, out=own)
        if self._count < self._size:
            cosines[~self._present[: self._size]] = -1.0
        return cosines

    def top(
        self, query: Floats, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[Slots, Floats]:
        """Return the `k` slots of highest cosine, with all that tie with the last. Beyond `exact`
        slots a few may be missing: on texts, one in a thousand of the first ten.
        """
        if self._codes is None:
            scores = self.scores(query)
            if allowed is not None:
                scores[~_widen(allowed, self._size)] = -1.0
            slots, near = best(scores, k, above=-1.0)
            if len(slots):
                slots = np.flatnonzero(scores >= near[-1] - SLACK)
            order, cosines = best(self.some(query, slots), k, above=-1.0)
            return slots[order], cosines
        usable = None if self._count == self._size else self._present[: self._size]
        if allowed is not None:
            usable = _widen(allowed, self._size) & self._present[: self._size]
        wanted = max(SINGLED_OUT, 4 * k)
        if usable is not None and np.count_nonzero(usable) <= 4 * wanted:
            slots = np.flatnonzero(usable)
        else:
            slots = self._codes.nearest(query, self._size, wanted, usable)
        order, cosines = best(self.some(query, slots), k, above=-1.0)
        return slots[order], cosines

    def some(self, query: Floats, slots: Slots) -> Floats:
        """Return the cosines of some slots; 0 where there is no vector. Each is computed alone, so
        equal texts have equal cosines whichever others are asked for.
        """
        known = np.flatnonzero(slots < self._size)
        known = known[self._present[slots[known]]]
        known = known[np.argsort(slots[known])]
        scaled = self._scaled(query)
        cosines = np.zeros(len(slots), np.float32)
        for begin in range(0, len(known), AT_ONCE):
            asked = known[begin : begin + AT_ONCE]
            cosines[asked] = np.vecdot(self._at_once(slots[asked]), scaled)
        return cosines

    def _at_once(self, slots: Slots) -> Floats:
        """Return the rows of at most AT_ONCE slots in ascending order; valid until the next
        call.
        """
        kept, compared = self._gathered[: len(slots)], self._compared[: len(slots)]
        numbers = slots // self._block
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(slots)]
        for begin, end in pairwise(bounds):
            number = int(numbers[begin])
            block, own = self._blocks[number], slots[begin:end] - number * self._block
            np.take(block, own, axis=0, out=kept[begin:end], mode="clip")
        if kept.dtype != compared.dtype:
            compared[:] = kept
        return compared

    def rows(self, slots: Slots) -> Floats:
        """Return the vectors of some slots, of length 1 up to rounding; zeros where there is
        none.
        """
        found = np.zeros((len(slots), self.dimension), np.float32)
        known = slots < self._size
        known[known] = self._present[slots[known]]
        found[known] = self._take(slots[known])
        return found if self._codes is None else (found / FINE).astype(np.float32)

    def near(self, slot: int, slots: Slots) -> Floats:
        """Return the cosines of some slots to another slot's vector; 0 where either has none."""
        if slot >= self._size or not self._present[slot]:
            return np.zeros(len(slots), np.float32)
        return self.some(self._take(np.array([slot]))[0], slots)

    def _scaled(self, query: Floats) -> Floats:
        """Return the query scaled so that its product with stored rows is the cosine."""
        unit: Floats = unit_rows(query[None, :])[0]
        return unit if self._codes is None else (unit / FINE).astype(np.float32)

    @property
    def _kind(self) -> type[np.float32 | np.int16]:
        """The dtype of stored rows."""
        return np.float32 if self._codes is None else np.int16

    def _set(self, slots: Slots, rows: Rows) -> None:
        for number, own in self._by_block(slots):
            self._blocks[number][slots[own] - number * self._block] = rows[own]

    def _take(self, slots: Slots) -> Floats:
        """Return the rows of slots below `_size`, in the stored scale."""
        rows = np.empty((len(slots), self.dimension), np.float32)
        for number, own in self._by_block(slots):
            rows[own] = self._blocks[number][slots[own] - number * self._block]
        return rows

    def _by_block(self, slots: Slots) -> Iterator[tuple[int, Slots]]:
        """Yield the blocks in which slots lie, each with the indices of its slots."""
        blocks = slots // self._block
        order = np.argsort(blocks, kind="stable")
        numbers, starts = np.unique(blocks[order], return_index=True)
        return zip(numbers.tolist(), np.split(order, starts)[1:], strict=True)

    def _grow(self, size: int) -> None:
        have = len(self._present)
        if size > have:
            present = np.zeros(max(size, have + have // 2), np.bool_)
            present[:have] = self._present
            self._present = present
        if size > self._exact:
            self._code()
        while size > self._block * len(self._blocks):
            room: Rows = np.zeros((self._block, self.dimension), self._kind)
            self._blocks.append(room)
        self._size = max(self._size, size)

    def _code(self) -> None:
        """Compute codes for all rows and reserve room for more; round the rows to 16 bits."""
        if self._codes is not None:
            self._codes.reserve(len(self._present))
            return
        self._codes = Codes(self.dimension)
        self._codes.reserve(len(self._present))
        self._gathered = np.empty_like(self._compared, np.int16)
        for number, rows in enumerate(self._blocks):
            first = number * self._block
            slots = np.arange(first, min(first + self._block, self._size))
            self._codes.put(slots, rows[: len(slots)].astype(np.float32, copy=False))
            self._blocks[number] = _round(rows)


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1; a zero row stays zero, and numbers that are not finite count as 0."""
    matrix = np.nan_to_num(np.asarray(matrix, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: Floats = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    return scaled


def _round(rows: Rows) -> NDArray[np.int16]:
    return np.rint(np.multiply(rows, FINE)).astype(np.int16)


def _widen(allowed: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """Extend a mask to `size` slots; slots beyond it are not allowed."""
    return np.pad(allowed[:size], (0, max(0, size - len(allowed))))
