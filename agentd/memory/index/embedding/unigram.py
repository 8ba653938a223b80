"""A tokenizer for SentencePiece unigram models: the likeliest split of each word into pieces.

The library for this brings 40 MB of dependencies. The pieces, their log probabilities and the
normalisation of characters come with the weights.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentd.memory.index.embedding.bert import Tokens

CACHED_WORDS = 50_000
LONGEST_CACHED = 40  # characters; a longer word is unlikely to recur

MARK = "\u2581"  # begins each word
_PENALTY = 10.0  # log probability of a character in no piece, below that of the rarest piece
_WORD = re.compile("[^ ]+")
_Piece = tuple[int, int, int]  # id, start and end in the word


class UnigramVocabulary(Struct, frozen=True):
    """The pieces by id ("" for special tokens), their log probabilities, the replacement of each
    character that is normalised, and the ids of the special tokens.
    """

    pieces: Sequence[str]
    scores: Sequence[float]
    written: Mapping[int, str]
    start: int
    end: int
    padding: int
    unknown: int


class Numbers:
    """A map from pieces to ids: an open-addressing hash table in two arrays, a tenth of the size of
    a dict. Pieces are compared by a 64-bit hash; two of 250,000 collide in one of 10^8 processes.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        size = 1 << (2 * len(pieces)).bit_length()
        self._mask = size - 1
        self._hashes, self._numbers = array("q", bytes(8 * size)), array("i", bytes(4 * size))
        for number, piece in enumerate(pieces):
            if piece:
                key = _key(piece)
                place = self._place(key)
                self._hashes[place], self._numbers[place] = key, number

    def get(self, piece: str) -> int | None:
        """Return the id of a piece; None for a string that is not a piece."""
        place = self._place(_key(piece))
        return self._numbers[place] if self._hashes[place] else None

    def _place(self, key: int) -> int:
        place = key & self._mask
        while (found := self._hashes[place]) and found != key:
            place = (place + 1) & self._mask
        return place


def _key(piece: str) -> int:
    # Hash the bytes: the hashes of the strings “te” and “整”, whose memory holds the same
    # bytes, are equal.
    return hash(piece.encode("utf-8", "surrogatepass"))


class UnigramTokenizer:
    """Splits a text at blanks, and each word into the pieces with the highest sum of scores."""

    def __init__(self, vocabulary: UnigramVocabulary) -> None:
        pieces, written = vocabulary.pieces, vocabulary.written
        self._ids = Numbers(pieces)
        self._scores = array("f", vocabulary.scores)
        self._written = dict(written)
        self._uneven = {chr(it) for it, letters in written.items() if len(letters) != 1}
        self._start, self._end = vocabulary.start, vocabulary.end
        self._unknown = vocabulary.unknown
        self._worst = min(vocabulary.scores, default=0.0) - _PENALTY
        self._longest: dict[str, int] = {}
        for piece in filter(None, pieces):
            self._longest[piece[0]] = max(self._longest.get(piece[0], 0), len(piece))
        self._split: dict[str, tuple[_Piece, ...]] = {}

    def encode(self, text: str, /, *, add_special_tokens: bool = True) -> Tokens:
        """Return the tokens of a text. Never raises."""
        found = Tokens([], [], [])
        for number, (word, places) in enumerate(self._words(text)):
            for piece, first, last in self._pieces(word):
                start = places[max(first - 1, 0)]  # MARK is not in the text
                found.ids.append(piece)
                found.offsets.append((start, places[last - 2] + 1 if last > 1 else start))
                found.word_ids.append(number)
        if not add_special_tokens:
            return found
        return Tokens(
            [self._start, *found.ids, self._end],
            [(0, 0), *found.offsets, (0, 0)],
            [None, *found.word_ids, None],
        )

    def _words(self, text: str) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield the normalised words, each with the positions of its characters in the text."""
        if self._uneven.isdisjoint(text):
            for match in _WORD.finditer(text.translate(self._written)):
                yield match.group(), range(match.start(), match.end())
            return
        letters, places = [], []
        for place, character in enumerate(text):
            written = self._written.get(ord(character), character)
            letters.append(written)
            places += [place] * len(written)
        for match in _WORD.finditer("".join(letters)):
            yield match.group(), places[match.start() : match.end()]

    def _pieces(self, word: str) -> tuple[_Piece, ...]:
        if (known := self._split.get(word)) is not None:
            return known
        pieces = self._likeliest(MARK + word)
        if len(word) <= LONGEST_CACHED:
            if len(self._split) >= CACHED_WORDS:
                self._split.clear()
            self._split[word] = pieces
        return pieces

    def _likeliest(self, word: str) -> tuple[_Piece, ...]:
        """Split a word by the Viterbi algorithm: the best split up to each character from the best
        ones before.
        """
        best = [0.0] + [-1e30] * len(word)
        last: list[_Piece] = [(self._unknown, 0, 0)] * (len(word) + 1)
        for start in range(len(word)):
            for number, end in self._from(word, start):
                score = self._worst if number == self._unknown else self._scores[number]
                if best[start] + score > best[end]:
                    best[end] = best[start] + score
                    last[end] = (number, start, end)
        found = []
        end = len(word)
        while end:
            found.append(last[end])
            end = last[end][1]
        return tuple(reversed(found))

    def _from(self, word: str, start: int) -> Iterator[tuple[int, int]]:
        """Yield the pieces that begin at `start`, and the single character there as unknown."""
        for end in range(start + 1, min(len(word), start + self._longest.get(word[start], 0)) + 1):
            number = self._ids.get(word[start:end])
            if number is not None:
                yield number, end
        yield self._unknown, start + 1
