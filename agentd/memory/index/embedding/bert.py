"""A tokenizer for BERT models: text to token ids, as the model was trained to read it.

The `tokenizers` library does the same, but brings 40 MB of dependencies; a test compares the two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

LONGEST_WORD = 100  # characters; a longer word is unknown
CACHED_WORDS = 50_000
UNKNOWN, START, END = "[UNK]", "[CLS]", "[SEP]"

_PLAIN = re.compile(r"[a-zA-Z0-9]+|[!-/:-@\[-`{-~]")
_BLANK, _ALONE = "\0", "\1"  # folded characters: a gap; a word of its own
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class Tokens(Struct, frozen=True):
    """The id of each token, its start and end in the text, and the number of its word (None for
    special tokens).
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]


class BertTokenizer:
    """Splits words, without case and accents, into the longest pieces that the vocabulary has
    (WordPiece).
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        """Raises KeyError for a vocabulary without the special tokens."""
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown, self._start, self._end = (self._ids[it] for it in (UNKNOWN, START, END))
        self._split: dict[str, tuple[tuple[int, int, int], ...]] = {}

    @classmethod
    def from_file(cls, path: Path) -> BertTokenizer:
        """Read a vocabulary with one piece a line. Raises OSError, ValueError, KeyError."""
        return cls(path.read_text("utf-8").removesuffix("\n").split("\n"))

    def encode(self, text: str, /, *, add_special_tokens: bool = True) -> Tokens:
        """Return the tokens of a text. Never raises."""
        found = Tokens([], [], [])
        if add_special_tokens:
            _add(found, self._start, (0, 0), None)
        for number, (word, places) in enumerate(_words(text)):
            for piece, first, last in self._pieces(word):
                _add(found, piece, (places[first], places[last - 1] + 1), number)
        if add_special_tokens:
            _add(found, self._end, (0, 0), None)
        return found

    def _pieces(self, word: str) -> tuple[tuple[int, int, int], ...]:
        """Return the id of each piece, and its start and end in the word."""
        if (known := self._split.get(word)) is not None:
            return known
        found: list[tuple[int, int, int]] = []
        start = 0
        while start < len(word) <= LONGEST_WORD:
            piece = self._longest(word, start)
            if piece is None:
                break
            found.append(piece)
            start = piece[2]
        pieces = tuple(found) if start == len(word) else ((self._unknown, 0, len(word)),)
        if len(self._split) >= CACHED_WORDS:
            self._split.clear()
        self._split[word] = pieces
        return pieces

    def _longest(self, word: str, start: int) -> tuple[int, int, int] | None:
        mark = "##" if start else ""
        for end in range(len(word), start, -1):
            number = self._ids.get(mark + word[start:end])
            if number is not None:
                return number, start, end
        return None


def _add(found: Tokens, number: int, offset: tuple[int, int], word: int | None) -> None:
    found.ids.append(number)
    found.offsets.append(offset)
    found.word_ids.append(word)


def _words(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the folded words of a text, each with the positions of its characters in the text."""
    if text.isascii() and text.isprintable():
        for match in _PLAIN.finditer(text):
            yield match.group().lower(), range(match.start(), match.end())
        return
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for letter in _fold(character):
            if letter[0] in (_BLANK, _ALONE):
                if letters:
                    yield "".join(letters), places
                    letters, places = [], []
                if letter[0] == _ALONE:
                    yield letter[1], [place]
            else:
                letters.append(letter)
                places.append(place)
    if letters:
        yield "".join(letters), places


@lru_cache(maxsize=10_000)
def _fold(character: str) -> tuple[str, ...]:
    """Return what a character is folded to: letters, a gap (_BLANK), or words of their own
    (_ALONE).
    """
    kind = unicodedata.category(character)
    if character in "\t\n\r":
        return (_BLANK,)
    if (kind[0] == "C" and kind != "Cn") or character == "\ufffd":
        return ()
    if character.isspace():
        return (_BLANK,)
    alone = any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)
    found: list[str] = []
    for part in unicodedata.normalize("NFD", character):
        if unicodedata.category(part) != "Mn":
            found += [
                _ALONE + letter if alone or _is_mark(letter) else letter for letter in part.lower()
            ]
    return tuple(found)


def _is_mark(letter: str) -> bool:
    """Whether a character is punctuation, or an ASCII symbol."""
    if letter.isascii():
        return letter.isprintable() and not letter.isalnum() and letter != " "
    return unicodedata.category(letter)[0] == "P"
