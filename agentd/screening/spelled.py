"""Text that is to be judged, with nothing in it that looks like something else. Pure."""

from __future__ import annotations

import unicodedata

from agentd.screening.ignorable import idle
from agentd.screening.lookalikes import mixed_words, passes_for

_WITHOUT_SHAPE = frozenset("\u2800\U0001d159")  # signs that are drawn as nothing, yet are no blanks
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def spelled(text: str) -> str:
    """The text with each character that nobody sees, that turns or steers what is seen, or that passes
    for a Latin letter beside Latin ones, as its number: `⟨U+202E⟩`. What scripts and emoji need stays.
    """
    if text.isascii() and text.isprintable():
        return text
    disguised, unseen = _disguised(text), idle(text)
    parts = [
        f"{char if place in disguised else ''}⟨U+{ord(char):04X}⟩"
        if place in disguised or place in unseen or _is_hidden(char)
        else char
        for place, char in enumerate(text)
    ]
    return "".join(parts)


def _is_hidden(char: str) -> bool:
    """Whether it is hidden wherever it stands; what is ignored by default is not asked about."""
    if char in "\n\t" or (" " <= char <= "~"):
        return False
    if char in _WITHOUT_SHAPE:
        return True
    return unicodedata.category(char) in _HIDDEN and char not in "\u200c\u200d\u180e"


def _disguised(text: str) -> frozenset[int]:
    """The places of letters that pass for Latin ones in words that have Latin ones too."""
    return frozenset(
        word.start() + place
        for word in mixed_words(text)
        for place, char in enumerate(word[0])
        if passes_for(char)
    )
