"""Text that is to be judged, with nothing in it that looks like something else. Pure."""

from __future__ import annotations

import re
import unicodedata

from agentd.screening.lookalikes import latin_letters

_LATIN = re.compile(r"[A-Za-z]")
_WORD = re.compile(r"[^\W\d_]+")
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and signs without a shape
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_SELECTORS = re.compile(r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_EMOJI_FORM, _JOINERS = "\ufe0f", "\u200c\u200d"


def spelled(text: str) -> str:
    """The text with each character that nobody sees, that turns or steers what is seen, or that passes
    for a Latin letter beside Latin ones, as its number: `⟨U+202E⟩`. What scripts and emoji need stays.
    """
    if text.isascii() and text.isprintable():
        return text
    disguised = _disguised(text)
    parts = [
        f"{char if place in disguised else ''}⟨U+{ord(char):04X}⟩"
        if place in disguised or _is_hidden(text, place, char)
        else char
        for place, char in enumerate(text)
    ]
    return "".join(parts)


def _is_hidden(text: str, place: int, char: str) -> bool:
    if char in "\n\t" or (" " <= char <= "~"):
        return False
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if char == _EMOJI_FORM:
        return not before or unicodedata.category(before)[0] not in "SNP"
    if char in _JOINERS:
        return not (_is_joined(before) and _is_joined(after))
    return (
        unicodedata.category(char) in _HIDDEN
        or char in _BLANK_LETTERS
        or _SELECTORS.match(char) is not None
    )


def _is_joined(neighbour: str) -> bool:
    """Whether a joiner beside it does its work: in scripts whose letters join, and between emoji."""
    if not neighbour or neighbour.isascii():
        return False
    is_letter = unicodedata.category(neighbour) in ("Lo", "Mn", "Mc", "So", "Sk")
    return is_letter or neighbour == _EMOJI_FORM


def _disguised(text: str) -> frozenset[int]:
    """The places of letters that pass for Latin ones in words that have Latin ones too."""
    if text.isascii():
        return frozenset()
    table = latin_letters()
    return frozenset(
        word.start() + place
        for word in _WORD.finditer(text)
        if not word[0].isascii() and _LATIN.search(word[0])
        for place, char in enumerate(word[0])
        if char in table
    )
