"""The properties of units that ranking uses: arrays by slot, and the order of units within a
file.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import date
from sys import getsizeof
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agentd.core.search import Chunk, Source
from agentd.core.workspace import FACTS_PATH
from agentd.memory.index.ranking import newest
from agentd.memory.index.search import words
from agentd.memory.index.search.arrays import Arrays, inside, of_strings, part, strings
from agentd.memory.index.search.entries import ASKS, QUESTION, UNDATED
from agentd.memory.index.search.postings import term_numbers
from agentd.memory.index.search.vocabulary import Vocabulary

Ints = NDArray[np.int64]

NOBODY = -1  # marks a missing speaker or neighbour
IMPORTANCE_FLOOR = 0.8  # lowest usual factor, so that importance never outweighs relevance
FAINT = 0.25  # importance below this marks shipped text, which has no floor
TELLS = 0.65  # worth of a unit that names a day, where one written on that day has 1
LASTING = 14  # longest span of days that still names the days within it

_SOURCES = tuple(Source)
_TRAITS = np.dtype(
    [("version", "<u2"), ("head", "<u4"), ("tokens", "<u4"), ("told", "<i4"), ("told_last", "<i4"),
     ("flags", "u1")]
)  # fmt: skip


class Corpus:
    """Units by slot. `numpy` views of its columns are valid until the next change."""

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self._columns = {name: array("i") for name in _COLUMNS}
        self._alive = bytearray()
        self._offsets = array("q", [0])
        self._terms = array("i")
        self._term_ids = Vocabulary() if vocabulary is None else vocabulary
        self._path_ids = Vocabulary()
        self._speakers: dict[str, int] = {}
        self._speaker_ids: dict[str, int] = {}
        self._names: dict[str, set[int]] = {}
        self._files: dict[int, array[int]] = {}  # slots of each file in reading order
        self._restored: _Order | None = None  # for files whose slots have not been needed yet

    def __len__(self) -> int:
        """Return the number of slots, removed ones included."""
        return len(self._alive)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and tables, without the vocabulary."""
        arrays = (*self._columns.values(), self._offsets, self._terms, self._alive)
        speakers = (self._speakers, self._speaker_ids, self._names)
        folded = sum(map(getsizeof, (*self._names, *self._names.values(), *self._speaker_ids)))
        files = getsizeof(self._files) + sum(map(getsizeof, self._files.values()))
        files += 0 if self._restored is None else self._restored.nbytes
        tables = folded + files + self._path_ids.nbytes
        return tables + sum(map(getsizeof, (*arrays, *speakers)))

    @classmethod
    def restored(
        cls, arrays: Mapping[str, NDArray[Any]], vocabulary: Vocabulary | None = None
    ) -> Self:
        """Build from what `arrays` returned."""
        own = cls(vocabulary)
        for name, column in part("column", arrays).items():
            own._columns[name].frombytes(column.tobytes())
        own._alive.extend(arrays["alive"].tobytes())
        own._offsets = array("q", arrays["offsets"].tobytes())
        own._terms.frombytes(arrays["terms"].tobytes())
        own._path_ids = Vocabulary(strings(arrays["paths"]))
        for name in strings(arrays["speakers"]):
            own._speaker(name)  # in this order they get the same numbers
        own._restored = _Order(arrays["alive"] > 0, part("column", arrays))
        return own

    def arrays(self) -> Arrays:
        """Return everything but the vocabulary as arrays, for `restored`; valid until the next
        change.
        """
        columns = {name: np.frombuffer(column, np.int32) for name, column in self._columns.items()}
        return {
            **inside("column", columns),
            "alive": np.frombuffer(self._alive, np.uint8),
            "offsets": np.frombuffer(self._offsets, np.int64),
            "terms": np.frombuffer(self._terms, np.int32),
            "paths": of_strings(self._path_ids.names),
            "speakers": of_strings(list(self._speaker_ids)),
        }

    def add(
        self, chunks: Sequence[Chunk], terms: Sequence[Sequence[str]], traits: Sequence[bytes]
    ) -> list[int]:
        """Add units with the terms and traits of their own text; return their slots."""
        first = len(self._alive)
        for name, values in self._values(chunks, traits).items():
            self._columns[name].frombytes(np.asarray(values, np.int32).tobytes())
        self._alive.extend(b"\1" * len(chunks))
        self._terms.frombytes(term_numbers(terms, self._term_ids.__getitem__).tobytes())
        lengths = np.fromiter(map(len, terms), np.int64, len(terms))
        self._offsets.frombytes((self._offsets[-1] + np.cumsum(lengths)).tobytes())
        slots = range(first, len(self._alive))
        for slot in slots:
            self._link(slot)
        return list(slots)

    def remove(self, slots: Sequence[int]) -> None:
        """Remove units; their neighbours become neighbours of each other."""
        for slot in slots:
            if self._alive[slot]:
                self._unlink(slot)
                self._alive[slot] = 0

    def move(self, slots: Ints, starts: Ints, ends: Ints) -> None:
        """Move units of one file to other lines. Neighbours stay the same."""
        if not len(slots):
            return
        line, end = self.column("line"), self.column("end")
        line[slots], end[slots] = starts, ends
        file = self._columns["file"][int(slots[0])]
        order = np.array(self._of_file(file), np.int32)
        order = order[np.lexsort((order, end[order], line[order]))]
        self._files[file] = array("i", order.tobytes())

    def column(self, name: str) -> NDArray[np.int32]:
        """Return one of the columns: file line end day source speaker tokens question asks told
        told_last evergreen importance previous next.
        """
        return np.frombuffer(self._columns[name], np.int32)

    def alive(self) -> NDArray[np.bool_]:
        """Return a mask of the slots that hold a unit."""
        return np.frombuffer(self._alive, np.bool_)

    def path(self, slot: int) -> str:
        """Return the path of a unit."""
        return self._path_ids.names[self._columns["file"][slot]]

    def place(self, slot: int) -> tuple[str, int, int]:
        """Return the path and lines of a unit: the tie-breaker, independent of the order of
        insertion.
        """
        return self.path(slot), self._columns["line"][slot], self._columns["end"][slot]

    def slots(self, path: str) -> list[int]:
        """Return the slots of a file's units, in reading order."""
        number = self._path_ids.get(path)
        return [] if number is None else self._of_file(number).tolist()

    def number(self, source: Source) -> int:
        """Return the number of a source in the column `source`."""
        return _SOURCES.index(source)

    def speakers(self, name: str) -> frozenset[int]:
        """Return the numbers of the speakers whose name contains this folded word."""
        return frozenset(self._names.get(name, ()))

    def allowed(self, sources: frozenset[Source] | None) -> NDArray[np.bool_]:
        """Return a mask of the slots that hold a unit of these sources; None means all sources."""
        if sources is None:
            return self.alive()
        wanted = np.array([source in sources for source in _SOURCES])
        allowed: NDArray[np.bool_] = self.alive() & wanted[self.column("source")]
        return allowed

    def ages(self, slots: Ints, today: date) -> NDArray[np.float32]:
        """Return the ages of units in days; NaN for those that do not age."""
        days = self.column("day")[slots].astype(np.float32)
        aged = self.column("evergreen")[slots] == 0
        return np.where(aged, np.float32(today.toordinal()) - days, np.float32(np.nan))

    def timely(self, slots: Ints, window: tuple[int, int]) -> NDArray[np.float32]:
        """Return how well the days of units, or the days they name, fit a window of days, 0..1."""
        day, told, last = (self.column(name)[slots] for name in ("day", "told", "told_last"))
        return np.maximum(newest.fits(day, day, window), newest.fits(told, last, window))

    def dated(self, slots: Ints, window: tuple[int, int]) -> NDArray[np.float32]:
        """Return 1 for units written in a window of days, TELLS for others that name days in it,
        else 0. A unit that names a whole month does not count for single days of it.
        """
        day, told, last = (self.column(name)[slots] for name in ("day", "told", "told_last"))
        on = (day >= max(window[0], 0)) & (day <= window[1])
        tells = (told >= 0) & (told <= window[1]) & (last >= window[0])
        tells &= last - told <= max(window[1] - window[0], LASTING)
        return np.where(on, 1.0, np.where(tells, TELLS, 0.0)).astype(np.float32)

    def within(self, window: tuple[int, int]) -> NDArray[np.bool_]:
        """Return a mask of the slots whose days, or the days they name, overlap a window of
        days.
        """
        day, told, last = (self.column(name) for name in ("day", "told", "told_last"))
        on = (day >= max(window[0], 0)) & (day <= window[1])
        tells: NDArray[np.bool_] = (told >= 0) & (told <= window[1]) & (last >= window[0])
        return on | tells

    def importance(self, slots: Ints) -> NDArray[np.float32]:
        """Return the factors for the scores of units: IMPORTANCE_FLOOR..1, less only for
        importances below FAINT.
        """
        given = self.column("importance")[slots].astype(np.float32) / 1000.0
        usual = IMPORTANCE_FLOOR + (1.0 - IMPORTANCE_FLOOR) * given
        counted: NDArray[np.float32] = np.minimum(usual, given / FAINT).astype(np.float32)
        return counted

    def term_id(self, term: str) -> int:
        """Return the number of a term; -1 for a term that no unit contains."""
        return self._term_ids.get(term, -1)

    def term(self, number: int) -> str:
        """Return the term with this number."""
        return self._term_ids.names[number]

    def term_set(self, slot: int) -> frozenset[int]:
        """Return the numbers of the distinct terms of a unit's own text."""
        return frozenset(self.terms(slot).tolist())

    def terms(self, slot: int) -> NDArray[np.int32]:
        """Return the numbers of the terms of a unit's own text, in reading order."""
        return np.frombuffer(self._terms, np.int32)[self._offsets[slot] : self._offsets[slot + 1]]

    def spread(self, slots: Ints) -> tuple[Ints, Ints, NDArray[np.int32]]:
        """Return the terms of many units in one run: for each term the unit's row, the position in
        the unit, and the term's number.
        """
        offsets = np.frombuffer(self._offsets, np.int64)
        starts = offsets[slots]
        lengths = offsets[slots + 1] - starts
        rows = np.repeat(np.arange(len(slots)), lengths)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return rows, places, np.frombuffer(self._terms, np.int32)[starts[rows] + places]

    def around(self, slots: Ints, reach: int) -> Ints:
        """Return the neighbours of units in their files: a row per unit with `reach` units before,
        the unit itself, and `reach` after; NOBODY past the ends.
        """
        out = np.full((len(slots), 2 * reach + 1), NOBODY, np.int64)
        out[:, reach] = slots
        for name, step in (("previous", -1), ("next", 1)):
            links = self.column(name)
            at = slots.astype(np.int64)
            for distance in range(1, reach + 1):
                at = np.where(at >= 0, links[at], NOBODY)
                out[:, reach + step * distance] = at
        return out

    def _values(self, chunks: Sequence[Chunk], traits: Sequence[bytes]) -> dict[str, ArrayLike]:
        """Return the values that units add to each column."""
        read = np.frombuffer(b"".join(traits), _TRAITS)
        given = np.array([chunk.importance for chunk in chunks])
        return {
            "file": [self._path_ids[chunk.path] for chunk in chunks],
            "line": [chunk.start_line for chunk in chunks],
            "end": [chunk.end_line for chunk in chunks],
            "day": [chunk.date.toordinal() if chunk.date else UNDATED for chunk in chunks],
            "source": [_SOURCES.index(chunk.source) for chunk in chunks],
            "speaker": [self._speaker(chunk.speaker) for chunk in chunks],
            "tokens": read["tokens"],
            "question": read["flags"] & QUESTION > 0,
            "asks": read["flags"] & ASKS > 0,
            "told": read["told"],
            "told_last": read["told_last"],
            "evergreen": [is_evergreen(chunk) for chunk in chunks],
            "importance": np.rint(1000 * np.clip(given, 0.0, 1.0)),
            "previous": np.full(len(chunks), NOBODY),
            "next": np.full(len(chunks), NOBODY),
        }

    def _link(self, slot: int) -> None:
        order = self._of_file(self._columns["file"][slot])
        at = bisect_left(order, self._lines(slot), key=self._lines)
        order.insert(at, slot)
        if self.path(slot) == FACTS_PATH:
            return  # facts are independent: neighbours are about something else
        before = order[at - 1] if at else NOBODY
        after = order[at + 1] if at + 1 < len(order) else NOBODY
        self._join(before, slot)
        self._join(slot, after)

    def _unlink(self, slot: int) -> None:
        order = self._of_file(self._columns["file"][slot])
        del order[bisect_left(order, self._lines(slot), key=self._lines)]
        self._join(self._columns["previous"][slot], self._columns["next"][slot])

    def _of_file(self, file: int) -> array[int]:
        """Return the slots of a file in reading order: the live array, which callers change."""
        if (order := self._files.get(file)) is None:
            held = b"" if self._restored is None else self._restored.of(file)
            order = self._files[file] = array("i", held)
        return order

    def _lines(self, slot: int) -> tuple[int, int, int]:
        """Return the sort key of a unit within its file."""
        return self._columns["line"][slot], self._columns["end"][slot], slot

    def _join(self, before: int, after: int) -> None:
        if before >= 0:
            self._columns["next"][before] = after
        if after >= 0:
            self._columns["previous"][after] = before

    def _speaker(self, name: str) -> int:
        number = self._speaker_ids.get(name)
        if number is None:
            number = self._speaker_ids[name] = self._new_speaker(name)
        return number

    def _new_speaker(self, name: str) -> int:
        folded = [words.fold(word) for word in words.raw_words(name)]
        if not folded:
            return NOBODY
        number = self._speakers.setdefault(" ".join(folded), len(self._speakers))
        for word in folded:
            self._names.setdefault(word, set()).add(number)
        return number


class _Order:
    """The slots of each file in reading order, as of the construction."""

    def __init__(self, alive: NDArray[np.bool_], columns: Mapping[str, NDArray[np.int32]]) -> None:
        slots = np.flatnonzero(alive).astype(np.int32)
        file, line, end = (columns[name][slots] for name in ("file", "line", "end"))
        order = np.lexsort((slots, end, line, file))
        self._files, self._slots = file[order], slots[order]
        self.nbytes = self._files.nbytes + self._slots.nbytes

    def of(self, file: int) -> bytes:
        """Return the slots of a file as bytes."""
        low, high = self._files.searchsorted(np.array([file, file + 1], np.int32)).tolist()
        return self._slots[low:high].tobytes()


_COLUMNS = (
    "file", "line", "end", "day", "source", "speaker", "tokens", "question", "asks",
    "told", "told_last", "evergreen", "importance", "previous", "next",
)  # fmt: skip


def is_evergreen(chunk: Chunk) -> bool:
    """Whether a unit does not age: one of MEMORY.md, or one without a date."""
    return chunk.date is None or chunk.path.rsplit("/", 1)[-1] == "MEMORY.md"
