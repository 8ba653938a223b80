"""The stored chunks in memory, where they are searched. Only one thread uses them at a time."""

from __future__ import annotations

import json
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from sys import getsizeof
from typing import Any, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from agentd.core.search import Chunk, EmptyReason, Hit, Ranked, SearchOptions, Source, StoredChunk
from agentd.memory.index.ranking.kinds import kinds_of
from agentd.memory.index.search import phrasings
from agentd.memory.index.search.arrays import (
    Arrays,
    Unusable,
    inside,
    of_strings,
    part,
    read,
    release,
    strings,
    write,
)
from agentd.memory.index.search.entries import entry, is_current
from agentd.memory.index.search.hits import hit_of
from agentd.memory.index.search.searcher import Searcher
from agentd.memory.index.search.vectors import Vectors

_BLOCK = 16  # chunks compressed together, to a third; a block takes .1 ms to read
_PLAIN = (
    "path", "start_line", "end_line", "text", "scope", "speaker", "context", "importance",
)  # fmt: skip
_plain = attrgetter(*_PLAIN)
_Row = list[Any] | None  # a chunk as a JSON row; None once it is removed


class Texts:
    """The chunks by slot, from 0 on, compressed in memory, so that hits need no disk access. No
    copy of a removed chunk remains.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[_Row] = []

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build from what `arrays` returned."""
        own = cls()
        pressed, ends = arrays["blocks"].tobytes(), np.cumsum(arrays["sizes"]).tolist()
        spans = zip([0, *ends], ends, strict=False)
        own._blocks = [pressed[start:end] for start, end in spans]
        own._last = _read(own._blocks.pop())
        return own

    def arrays(self) -> Arrays:
        """Return the contents as arrays, for `restored`."""
        blocks = [*self._blocks, _compress(self._last)]
        return {
            "blocks": np.frombuffer(b"".join(blocks), np.uint8),
            "sizes": np.array([len(block) for block in blocks], np.int64),
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the compressed blocks, and of the last rows that are not compressed yet."""
        last = [value for row in self._last for value in row or ()]
        return sum(map(getsizeof, (self._blocks, *self._blocks, self._last, *self._last, *last)))

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Add the chunks of the next slots."""
        self._last.extend(map(_row, chunks))
        full = len(self._last) // _BLOCK * _BLOCK
        for first in range(0, full, _BLOCK):
            self._blocks.append(_compress(self._last[first : first + _BLOCK]))
        del self._last[:full]

    def chunks(self, slots: Sequence[int]) -> dict[int, Chunk]:
        """Return the chunks of slots, without removed ones, with the lines they had when they were
        added.
        """
        read = {len(self._blocks): self._last}
        found = {}
        for slot in slots:
            block, at = divmod(slot, _BLOCK)
            if block not in read:
                read[block] = _read(self._blocks[block])
            if (row := read[block][at]) is not None:
                found[slot] = _chunk(row)
        return found

    def remove(self, slots: Sequence[int]) -> None:
        """Remove chunks."""
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
                self._blocks[block] = _compress(held)


def _compress(rows: list[_Row]) -> bytes:
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


_RANGES = 64  # ranges of ids without vectors; more of them are taken as one
SPARE = 10_000  # removed slots; with more than this and than live chunks, reload


class Match(Struct, frozen=True):
    """A hit: the ids of its chunks in reading order, and the chunks themselves."""

    ids: tuple[int, ...]
    chunks: tuple[Chunk, ...]
    score: float
    scores: Mapping[str, float]
    superseded_by: str  # `path:line` of a newer chunk; "" if there is none


class ChunkMatches(Struct, frozen=True):
    """The answer to a search of a mirror."""

    hits: tuple[Match, ...]
    reason: EmptyReason | None
    confidence: float = 1.0


class Mirror:
    """A Searcher by chunk ids, which ascend with its slots. `last` is the highest id it has seen.
    `done` holds for each model the id up to which all vectors are loaded; the loader sets it.
    """

    def __init__(
        self, spare: int = SPARE, restored: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        """`restored` are chunks as `arrays` returned them, without their vectors."""
        self.last = 0
        self.done: dict[str, int] = {}
        # Changes since it was written to a file: chunks added or removed, vectors set.
        self.unsaved = 0
        self.unfilled: set[str] = set()  # models that may lack new vectors
        self._spare = spare
        self._searcher = Searcher(restored=restored and part("searcher", restored))
        self._texts = Texts.restored(part("texts", restored)) if restored else Texts()
        self._ids = array("q")
        self._gone: set[int] = set()
        self._vectors: dict[str, Vectors] = {}
        if restored:
            self._ids.frombytes(restored["ids"].tobytes())
            self.last = int(restored["last"][0])

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build from what `arrays` returned, vectors included."""
        mirror = cls(restored=arrays)
        for at, model in enumerate(strings(arrays["models"])):
            mirror._vectors[model] = Vectors.restored(part(f"vectors{at}", arrays))
            mirror.done[model] = mirror.last
            mirror.unfilled.add(model)
        return mirror

    def arrays(self) -> Arrays:
        """Return everything as arrays, for `restored`; valid until the next change."""
        whole = [model for model, done in self.done.items() if done and model in self._vectors]
        found = {
            **inside("searcher", self._searcher.arrays()),
            **inside("texts", self._texts.arrays()),
            "ids": np.frombuffer(self._ids, np.int64),
            "last": np.array([self.last], np.int64),
            "models": of_strings(whole),
        }
        for at, model in enumerate(whole):
            found |= inside(f"vectors{at}", self._vectors[model].arrays())
        return found

    def write(self, path: Path, mark: str) -> None:
        """Write everything to a file. Raises OSError."""
        write(path, mark, self.arrays())

    def lacking(self, model: str) -> list[tuple[int, int]]:
        """Return ranges of ids (first excluded, last included) that cover all chunks without a
        vector of the model.
        """
        has = np.zeros(len(self._ids), np.bool_)
        held = self._vectors[model].present()
        has[: len(held)] = held
        slots = np.flatnonzero(self._searcher.corpus.alive() & ~has)
        if not len(slots):
            return []
        breaks = np.flatnonzero(np.diff(slots) > 1) + 1
        if len(breaks) >= _RANGES:
            breaks = breaks[:0]
        bounds = [0, *breaks.tolist(), len(slots)]
        ids = np.frombuffer(self._ids, np.int64)[slots]
        return [(int(ids[low]) - 1, int(ids[high - 1])) for low, high in pairwise(bounds)]

    def __len__(self) -> int:
        """Return how many chunks can be found."""
        return len(self._searcher)

    @property
    def nbytes(self) -> int:
        """Bytes of everything: arrays, texts, vectors and tables."""
        vectors = sum(own.nbytes for own in self._vectors.values())
        own = getsizeof(self._ids) + getsizeof(self._gone)
        return self._searcher.nbytes + vectors + self._texts.nbytes + own

    @property
    def is_worn(self) -> bool:
        """Whether most slots belong to removed chunks."""
        return len(self._ids) - len(self) > self._spare + len(self)

    def add(self, rows: Sequence[StoredChunk]) -> None:
        """Add the next chunks."""
        new = [row for row in rows if row.id > self.last and row.id not in self._gone]
        if new:
            self._searcher.add_entries(
                [row if is_current(row.traits) else entry(row.chunk) for row in new]
            )
            self._texts.add([row.chunk for row in new])
            self._ids.extend(row.id for row in new)
            self.unsaved += len(new)
        if rows:
            self.last = max(self.last, rows[-1].id)
            self._gone = {number for number in self._gone if number > self.last}

    def remove(self, ids: Iterable[int]) -> None:
        """Remove chunks; those that have not been added yet will be skipped."""
        gone = list(ids)
        self._gone.update(number for number in gone if number > self.last)
        self._forget([slot for number in gone if (slot := self._slot(number)) is not None])

    def remove_paths(self, paths: Iterable[str]) -> None:
        """Remove all chunks of files."""
        self._forget([slot for path in paths for slot in self._searcher.corpus.slots(path)])

    def move(self, lines: Sequence[tuple[int, int, int]]) -> None:
        """Move chunks of one file to other lines, given as (id, first line, last line)."""
        if not lines or not self._ids:
            return
        ids, starts, ends = np.array(lines, np.int64).T
        here = np.frombuffer(self._ids, np.int64)
        slots = np.minimum(here.searchsorted(ids), len(here) - 1)
        held = here[slots] == ids
        self._searcher.corpus.move(slots[held], starts[held], ends[held])
        self.unsaved += int(np.count_nonzero(held))

    def keep(self, ids: Sequence[int]) -> None:
        """Remove all chunks but these."""
        here = np.frombuffer(self._ids, np.int64)
        gone = ~np.isin(here, np.array(ids, np.int64), assume_unique=True)
        self._forget(np.flatnonzero(gone & self._searcher.corpus.alive()).tolist())

    def put_vectors(self, model: str, pairs: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors, in stored form, of chunks that are here."""
        if not pairs or not self._ids:
            return
        numbers = np.array([number for number, _ in pairs], np.int64)
        slots = np.frombuffer(self._ids, np.int64).searchsorted(numbers)
        slots = np.minimum(slots, len(self._ids) - 1)
        here = np.frombuffer(self._ids, np.int64)[slots] == numbers
        here &= self._searcher.corpus.alive()[slots]
        if not here.any():
            return
        matrix = np.frombuffer(b"".join(vector for _, vector in pairs), "<f2")
        matrix = matrix.reshape(len(pairs), -1)[here]
        if model not in self._vectors:
            self._vectors[model] = Vectors(matrix.shape[1])
        self._vectors[model].put(slots[here].tolist(), matrix.astype(np.float32))
        self.unsaved += len(matrix)

    def drop_vectors(self, model: str) -> None:
        """Remove a model's vectors."""
        self.done.pop(model, None)
        self.unfilled.discard(model)
        self._vectors.pop(model, None)

    def further(self, number: int, count: int) -> int:
        """Return the id of the chunk `count` places after an id, or the last id."""
        at = bisect_right(self._ids, number) + count - 1
        return self._ids[at] if at < len(self._ids) else self.last

    def search(
        self,
        texts: Sequence[str],
        vectors: Sequence[bytes] | None,
        model: str,
        options: SearchOptions,
    ) -> ChunkMatches:
        """Return the best hits for several phrasings of one question; `vectors` are theirs, of
        `model`.
        """
        self._searcher.vectors = self._vectors.get(model)
        self._searcher.kinds = kinds_of(model)
        if vectors is None:
            asked: list[phrasings.Phrasing] = [(text, None) for text in texts]
        else:
            pairs = zip(texts, vectors, strict=True)
            asked = [(text, np.frombuffer(vector, "<f4")) for text, vector in pairs]
        ranking = phrasings.search(self._searcher, asked, options)
        hits = tuple(self._match(hit) for hit in ranking)
        return ChunkMatches(hits, ranking.reason, ranking.confidence)

    def _match(self, hit: Ranked) -> Match:
        newer = ""
        if hit.superseded_by is not None:
            path, line, _ = self._searcher.corpus.place(hit.superseded_by)
            newer = f"{path}:{line}"
        ids = tuple(self._ids[slot] for slot in hit.slots)
        held = self._texts.chunks(hit.slots)
        chunks = tuple(self._at_present_lines(slot, chunk) for slot, chunk in held.items())
        return Match(ids, chunks, hit.score, hit.scores, newer)

    def _at_present_lines(self, slot: int, chunk: Chunk) -> Chunk:
        """Return the chunk with its present lines."""
        _, line, _ = self._searcher.corpus.place(slot)
        return chunk if line == chunk.start_line else chunk.moved(line - chunk.start_line)

    def _slot(self, number: int) -> int | None:
        at = bisect_left(self._ids, number)
        return at if at < len(self._ids) and self._ids[at] == number else None

    def _forget(self, slots: list[int]) -> None:
        if not slots:
            return
        self.unsaved += len(slots)
        self._searcher.vectors = None
        self._searcher.remove(slots)
        self._texts.remove(slots)
        for vectors in self._vectors.values():
            vectors.remove(slots)


def restore_mirror(path: Path, mark: str) -> Mirror:
    """Read the mirror that was written to the file with this mark. Raises ValueError for an
    unusable file, FileNotFoundError if there is none.
    """
    try:
        arrays = read(path, mark)
        mirror = Mirror.restored(arrays)
        release(arrays)
        return mirror
    except (LookupError, TypeError) as error:
        raise Unusable(f"its arrays do not fit together ({error})") from error


def arrange_hits(
    hits: Sequence[Hit], text: str, options: SearchOptions, highest: float
) -> tuple[Hit, ...]:
    """Rank hits of keyword search as a searcher that knows no other chunks: newest first, within
    all limits. Scores are scaled down to at most `highest`.
    """
    entries = [entry(hit.chunk) for hit in hits]
    mirror = Mirror()
    mirror.add([StoredChunk(n, e.chunk, e.terms, e.traits) for n, e in enumerate(entries, 1)])
    options = replace(options, min_score=options.min_score / highest)
    found = mirror.search([text], None, "", options).hits
    return tuple(replace(hit_of(match), score=highest * match.score) for match in found)
