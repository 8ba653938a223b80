"""Text to rows of an embedding table: words, and pieces of words that the table does not know whole."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

LONGEST_WORD = 40  # characters; what is longer is no word (keys, encoded data) and says nothing
CACHED_WORDS = 2_048  # some 150 bytes each: what one text uses comes again in the next

_ASCII_WORD = re.compile(r"[a-z]+|[0-9]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_ACCENT = re.compile("[\u0300-\u036f]+")
# Written without spaces, and a character is a word or a good part of one.
_IDEOGRAPH = re.compile("([\u3400-\u9fff\uf900-\ufaff])")


class WordPiece:
    """Splits words into the longest pieces of a vocabulary, from the left.

    In the vocabulary, `##ing` is a piece that continues a word. Case, accents and punctuation do not
    count; letters and digits never share a word. Safe to use from several threads at once.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._split: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str) -> list[int]:
        """The rows of the text's words, in order; none for a text without a known piece.

        Never raises, whatever the text holds.
        """
        known, found = self._rows, []
        for word in words(text):
            row = known.get(word)
            if row is not None:
                found.append(row)
            else:
                pieces = self._split.get(word)
                found.extend(self._pieces(word) if pieces is None else pieces)
        return found

    def _pieces(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return ()
        found: list[int] = []
        start = 0
        while start < len(word):
            row, start = self._longest(word, start)
            if row is None:
                found = []  # a word that is only half known would stand for another word
                break
            found.append(row)
        if len(self._split) >= CACHED_WORDS:
            self._split.clear()
        self._split[word] = tuple(found)
        return self._split[word]

    def _longest(self, word: str, start: int) -> tuple[int | None, int]:
        mark = "##" if start else ""
        for end in range(len(word), start, -1):
            row = self._rows.get(mark + word[start:end])
            if row is not None:
                return row, end
        return None, len(word)


def words(text: str) -> list[str]:
    """The words of a text, folded: `Café-Tür 24h` is `cafe`, `tur`, `24`, `h`."""
    lowered = text.lower()
    if lowered.isascii():
        return _ASCII_WORD.findall(lowered)
    spread = unicodedata.normalize("NFD", _IDEOGRAPH.sub(r" \1 ", lowered))
    return _WORD.findall(_ACCENT.sub("", spread))
