"""Text to rows of the word table: whole words, or pieces of words that the table lacks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

LONGEST_WORD = 40  # characters; what is longer (keys, encoded data) is not a word and is skipped
CACHED_WORDS = 2_048  # about 150 bytes each; words of one text recur in the next

_ASCII_WORD = re.compile(r"[a-z]+|[0-9]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_ACCENT = re.compile("[\u0300-\u036f]+")
# Written without spaces; a character is a word or a large part of one.
_IDEOGRAPH = re.compile("([\u3400-\u9fff\uf900-\ufaff])")


class WordPiece:
    """Splits words into the longest pieces of a vocabulary, from the left.

    In the vocabulary, `##ing` is a piece that continues a word. Case, accents and punctuation are
    ignored; letters and digits never share a word. Safe to use from several threads at once.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._rows = {piece: row for row, piece in enumerate(vocabulary)}
        self._split: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str) -> list[int]:
        """Return the rows of the text's words, in order; none for a text without a known piece.

        Never raises.
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
                found = []  # a word that is only half known would be taken for another
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
    """Return the folded words of a text: `Café-Tür 24h` gives `cafe`, `tur`, `24`, `h`."""
    lowered = text.lower()
    if lowered.isascii():
        return _ASCII_WORD.findall(lowered)
    spread = unicodedata.normalize("NFD", _IDEOGRAPH.sub(r" \1 ", lowered))
    return _WORD.findall(_ACCENT.sub("", spread))
