"""Finds the known words nearest to a word that no unit contains."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from sys import getsizeof
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from agentd.memory.index.search.arrays import Arrays, of_strings, strings
from agentd.memory.index.search.vocabulary import Vocabulary

SHORTEST = 4  # letters; shorter words are similar to too many others
LONGEST = 24
LOOKED_AT = 40  # known words whose edit distance is computed


class Spelling:
    """Every word that was ever indexed, folded, with an index by trigrams."""

    def __init__(self) -> None:
        self._known = Vocabulary()
        self._triples: dict[str, array[int]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the words and of the trigram index."""
        triples = sum(map(getsizeof, (*self._triples, *self._triples.values())))
        return self._known.nbytes + getsizeof(self._triples) + triples

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build from what `arrays` returned."""
        own = cls()
        own._known = Vocabulary(strings(arrays["words"]))
        numbers, ends = arrays["numbers"].tobytes(), np.cumsum(arrays["counts"]).tolist()
        starts = [0, *ends[:-1]] if ends else []
        for triple, start, end in zip(strings(arrays["triples"]), starts, ends, strict=True):
            own._triples[triple] = array("i", numbers[4 * start : 4 * end])
        return own

    def arrays(self) -> Arrays:
        """Return the contents as arrays, for `restored`."""
        numbers = b"".join(one.tobytes() for one in self._triples.values())
        return {
            "words": of_strings(self._known.names),
            "triples": of_strings(list(self._triples)),
            "counts": np.array([len(one) for one in self._triples.values()], np.int64),
            "numbers": np.frombuffer(numbers, np.int32),
        }

    def learn(self, words: Iterable[str]) -> None:
        """Add folded words."""
        for word in words:
            if word in self._known or not _fit(word):
                continue
            number = self._known[word]
            for triple in _triples(word):
                self._triples.setdefault(triple, array("i")).append(number)

    def near(self, word: str) -> list[tuple[str, int]]:
        """Return known words with their edit distance, nearest first: at most one letter changed,
        missing, added or swapped with the next; at most two for words of six letters or more.
        """
        if not _fit(word):
            return []
        most = 2 if len(word) >= 6 else 1
        found = {one: 1 for one in _near_spellings(word) if one in self._known}
        for other in self._alike(word):
            if other not in found and (far := _distance(word, other, most)) <= most:
                found[other] = far
        return sorted(found.items(), key=lambda item: (item[1], item[0][0] != word[0], item[0]))

    def _alike(self, word: str) -> list[str]:
        lists = [
            np.frombuffer(self._triples[t], np.int32) for t in _triples(word) if t in self._triples
        ]
        if not lists:
            return []
        numbers, counts = np.unique(np.concatenate(lists), return_counts=True)
        if len(numbers) > 4 * LOOKED_AT:
            kept = np.argpartition(-counts, 4 * LOOKED_AT)[: 4 * LOOKED_AT]
            numbers, counts = numbers[kept], counts[kept]
        alike = [
            (self._known.names[n], c)
            for n, c in zip(numbers.tolist(), counts.tolist(), strict=True)
        ]
        alike = [(w, c) for w, c in alike if abs(len(w) - len(word)) <= 2]
        alike.sort(key=lambda one: (-one[1] / (len(one[0]) + len(word)), one[0]))
        return [w for w, _ in alike[:LOOKED_AT]]


def _fit(word: str) -> bool:
    return SHORTEST <= len(word) <= LONGEST and word.isalpha()


def _triples(word: str) -> set[str]:
    padded = f"^{word}$"
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def _near_spellings(word: str) -> set[str]:
    """Return the variants of a word with two neighbouring letters swapped, or one left out."""
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    return (swapped | {word[:i] + word[i + 1 :] for i in range(len(word))}) - {word}


def _distance(one: str, other: str, most: int) -> int:
    """Return the edit distance, counting changes, insertions, deletions and swaps; any value above
    `most` if it exceeds that.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        new = [i]
        for j, against in enumerate(other, 1):
            cost = min(row[j] + 1, new[-1] + 1, row[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, before[j - 2] + 1)
            new.append(cost)
        if min(new) > most:
            return most + 1
        before, row = row, new
    return row[-1]
