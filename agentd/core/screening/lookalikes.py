"""Letters that pass for Latin ones. Pure; `lookalikes.txt` says where the table is from.

What mixes nothing is not found: a word that is Cyrillic from end to end may be a Russian one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from agentd.core.screening.ignorable import IGNORABLE, idle
from agentd.core.text import UNSPACED, at_first_use

# Marks on letters and what is drawn as nothing tear no word apart.
_UNSEEN = f"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f{IGNORABLE}]*+"
_WORD = at_first_use(rf"(?:[^\W{UNSPACED}]{_UNSEEN})++")
_LATIN = re.compile(r"[A-Za-z]")
_LEAST = 4  # letters: shorter ones are units and symbols: kΩ, Δx
_SAME_SHAPE = (
    "<font>",
    "<wide>",
    "<compat>",
)  # decompositions of what is neither raised nor framed


@cache
def latin_letters() -> Mapping[str, str]:
    """The Latin letter that each look-alike passes for."""
    table = (files("agentd.core.screening") / "lookalikes.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in table.splitlines() if not line.startswith("#"))
    return {char: latin for latin, chars in rows for char in chars}


@cache
def passes_for(char: str) -> str:
    """The Latin letters that a character is drawn like, "" if it is one or none: by the table of those of
    other scripts, or by Unicode's own word that it is a form of them.
    """
    if char.isascii():
        return ""
    if latin := latin_letters().get(char):
        return latin
    if not unicodedata.decomposition(char).startswith(_SAME_SHAPE):
        return ""
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain.isascii() and plain.isalpha() else ""


def mixed_words(text: str) -> Iterator[re.Match[str]]:
    """Words of Latin letters and look-alikes of them."""
    if text.isascii():
        return
    for word in _WORD().finditer(text):
        if not word[0].isascii() and _LATIN.search(word[0]) and any(map(passes_for, word[0])):
            yield word


def disguised(text: str) -> Iterator[tuple[str, int]]:
    """Such words: the reason, and the index of the word."""
    for word in mixed_words(text):
        if sum(char.isalpha() or bool(passes_for(char)) for char in word[0]) >= _LEAST:
            yield "mixes Latin letters with look-alikes of other alphabets", word.start()


_WITHOUT_SHAPE = frozenset("\u2800\U0001d159")  # signs that are drawn as nothing, yet are no blanks
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def spelled(text: str) -> str:
    """The text as somebody who is to judge it should see it: each character that nobody sees, that turns
    or steers what is seen, or that passes for a Latin letter beside Latin ones, stands as its number,
    `⟨U+202E⟩`. What scripts and emoji need stays.
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
