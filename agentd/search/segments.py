"""A run of documents with its terms inverted, in flat arrays: four bytes for each posting."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentd.search.arrays import Arrays

Codes = NDArray[np.uint16]
Ints = NDArray[np.int64]

MOST = 1 << 16  # documents of one segment, so that two bytes say which
LONGEST = (1 << 12) - 1  # terms of a document that are told apart; a longer one counts as this long
OFTENEST = 1 << 4  # a term that stands more often in a document counts as often as this


@dataclass(frozen=True, slots=True)
class Segment:
    """Documents `first` to `first + count`. The postings of `terms[i]` (numbers, ascending) are
    those from `starts[i]` to `starts[i + 1]`, none if all that held it went: which document, and
    how often beside how many terms (see `impact_table`).
    """

    first: int
    count: int
    terms: NDArray[np.int32]
    starts: NDArray[np.int32]
    places: Codes
    codes: Codes

    @property
    def end(self) -> int:
        """The first slot behind it."""
        return self.first + self.count

    @property
    def nbytes(self) -> int:
        """What its arrays hold in memory."""
        return (
            self.terms.nbytes + self.starts.nbytes + self.places.nbytes + self.codes.nbytes
        )  # fmt: skip

    def arrays(self) -> Arrays:
        """Its arrays by the names that they have here."""
        return {
            "terms": self.terms, "starts": self.starts, "places": self.places, "codes": self.codes
        }  # fmt: skip

    @property
    def frequencies(self) -> NDArray[np.int32]:
        """In how many documents each of `terms` stands."""
        return np.diff(self.starts)

    def postings(self, term: int) -> tuple[Codes, Codes] | None:
        """The places of the documents that hold a term, ascending, and their codes."""
        at = int(self.terms.searchsorted(np.int32(term)))  # of their type, or all are copied
        if at == len(self.terms) or self.terms[at] != term:
            return None
        start, end = self.starts[at : at + 2].tolist()
        if start == end:
            return None
        return self.places[start:end], self.codes[start:end]

    def without(self, slots: Ints) -> tuple[Segment, NDArray[np.int32]]:
        """The segment without the postings of some documents, and the number of the term of each
        posting that went.
        """
        gone = np.zeros(self.count, np.bool_)
        gone[slots - self.first] = True
        lost = np.flatnonzero(gone[self.places])
        numbers = self.terms[self.starts.searchsorted(lost, side="right") - 1]
        starts = (self.starts - lost.searchsorted(self.starts)).astype(np.int32)
        places, codes = np.delete(self.places, lost), np.delete(self.codes, lost)
        return Segment(self.first, self.count, self.terms, starts, places, codes), numbers


def numbered(documents: Sequence[Sequence[str]], number: Callable[[str], int]) -> NDArray[np.int32]:
    """The numbers of the terms of documents, one after the other. Others get the interpreter between
    any two documents, as they would not during one call for all.
    """
    numbers = array("i")
    for terms in documents:
        numbers.extend(map(number, terms))
    return np.frombuffer(numbers, np.int32)


def build(first: int, numbers: NDArray[np.int32], lengths: NDArray[np.int32]) -> Segment:
    """The segment of documents whose terms' numbers follow each other."""
    places = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    keys, counts = np.unique(numbers.astype(np.int64) << 16 | places, return_counts=True)
    own = np.minimum(lengths, LONGEST).astype(np.int64)[keys & 0xFFFF]
    often = np.minimum(counts, OFTENEST) - 1
    return _from_keys(first, len(lengths), keys << 16 | often << 12 | own)


def merge(one: Segment, other: Segment) -> Segment:
    """Two segments, of which the second follows the first, as one."""
    keys = np.concatenate([_keys(one, 0), _keys(other, one.count)])
    keys.sort()
    return _from_keys(one.first, one.count + other.count, keys)


def impact_table(k1: float, b: float, mean: float) -> NDArray[np.float32]:
    """BM25 of each code without the term's idf: of how often a term stands in a document beside the
    document's length, when documents have `mean` terms.
    """
    often = np.arange(1, OFTENEST + 1, dtype=np.float32)[:, None]
    norm = np.float32(k1) * ((1.0 - b) + np.float32(b / mean) * np.arange(LONGEST + 1))
    return ((k1 + 1.0) * often / (often + norm)).astype(np.float32).ravel()


def _keys(segment: Segment, shift: int) -> Ints:
    """Term, place and code of each posting in one number, ascending."""
    numbers = np.repeat(segment.terms.astype(np.int64), segment.frequencies)
    return numbers << 32 | (segment.places.astype(np.int64) + shift) << 16 | segment.codes


def _from_keys(first: int, count: int, keys: Ints) -> Segment:
    terms, starts = _starts((keys >> 32).astype(np.int32))
    places = (keys >> 16 & 0xFFFF).astype(np.uint16)
    return Segment(first, count, terms, starts, places, (keys & 0xFFFF).astype(np.uint16))


def _starts(numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Distinct numbers of an ascending list, and where each starts, the list's end behind them."""
    change = np.flatnonzero(np.diff(numbers, prepend=np.int32(-1))).astype(np.int32)
    return numbers[change], np.append(change, np.int32(len(numbers)))
