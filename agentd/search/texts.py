"""What chunks say, by slot: pressed together in memory, so that hits need no disk."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from datetime import date
from operator import attrgetter
from sys import getsizeof
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from agentd.domain.memory import Chunk, Source
from agentd.search.arrays import Arrays

_BLOCK = 16  # chunks that are pressed together to a third; they take .1 ms to read
_PLAIN = (
    "path", "start_line", "end_line", "text", "scope", "speaker", "context", "importance",
)  # fmt: skip
_plain = attrgetter(*_PLAIN)
_Row = list[Any] | None  # a chunk as JSON holds it; None once it is forgotten


class Texts:
    """Chunks by slot, from 0 on. What is forgotten leaves no copy here."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[_Row] = []

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The chunks of `arrays`."""
        own = cls()
        pressed, ends = arrays["blocks"].tobytes(), np.cumsum(arrays["sizes"]).tolist()
        spans = zip([0, *ends], ends, strict=False)
        own._blocks = [pressed[start:end] for start, end in spans]
        own._last = _read(own._blocks.pop())
        return own

    def arrays(self) -> Arrays:
        """All of it, to be restored from."""
        blocks = [*self._blocks, _pressed(self._last)]
        return {
            "blocks": np.frombuffer(b"".join(blocks), np.uint8),
            "sizes": np.array([len(block) for block in blocks], np.int64),
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the texts that are pressed together, and of those that are yet to be."""
        last = [value for row in self._last for value in row or ()]
        return sum(map(getsizeof, (self._blocks, *self._blocks, self._last, *self._last, *last)))

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Take in the chunks of the next slots."""
        self._last.extend(map(_row, chunks))
        full = len(self._last) // _BLOCK * _BLOCK
        for first in range(0, full, _BLOCK):
            self._blocks.append(_pressed(self._last[first : first + _BLOCK]))
        del self._last[:full]

    def chunks(self, slots: Sequence[int]) -> tuple[Chunk, ...]:
        """The chunks of slots, without those that were forgotten."""
        read = {len(self._blocks): self._last}
        found = []
        for slot in slots:
            block, at = divmod(slot, _BLOCK)
            if block not in read:
                read[block] = _read(self._blocks[block])
            found.append(read[block][at])
        return tuple(_chunk(row) for row in found if row is not None)

    def remove(self, slots: Sequence[int]) -> None:
        """Forget chunks."""
        by_block: dict[int, list[int]] = {}
        for slot in slots:
            block, at = divmod(slot, _BLOCK)
            by_block.setdefault(block, []).append(at)
        for block, places in by_block.items():
            full = block < len(self._blocks)
            held = _read(self._blocks[block]) if full else self._last
            for at in places:
                held[at] = None
            if full:
                self._blocks[block] = _pressed(held)


def _pressed(rows: list[_Row]) -> bytes:
    return zlib.compress(json.dumps(rows).encode(), 1)


def _read(block: bytes) -> list[_Row]:
    rows: list[_Row] = json.loads(zlib.decompress(block))
    return rows


def _row(chunk: Chunk) -> list[Any]:
    day = chunk.date and chunk.date.toordinal()
    return [*_plain(chunk), chunk.source, day]


def _chunk(row: list[Any]) -> Chunk:
    *plain, source, day = row
    on = None if day is None else date.fromordinal(day)
    return Chunk(**dict(zip(_PLAIN, plain, strict=True)), source=Source(source), date=on)
