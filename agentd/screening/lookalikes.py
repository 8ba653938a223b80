"""Letters that pass for Latin ones. Pure; `lookalikes.txt` says where the table is from.

What mixes nothing is not found: a word that is Cyrillic from end to end may be a Russian one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from agentd.domain.scripts import UNSPACED
from agentd.screening.ignorable import IGNORABLE

# Marks on letters and what is drawn as nothing tear no word apart.
_UNSEEN = f"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f{IGNORABLE}]*+"
_WORD = re.compile(rf"(?:[^\W{UNSPACED}]{_UNSEEN})++")
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
    table = (files("agentd.screening") / "lookalikes.txt").read_text(encoding="utf-8")
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
    for word in _WORD.finditer(text):
        if not word[0].isascii() and _LATIN.search(word[0]) and any(map(passes_for, word[0])):
            yield word


def disguised(text: str) -> Iterator[tuple[str, int]]:
    """Such words: the reason, and the index of the word."""
    for word in mixed_words(text):
        if sum(char.isalpha() or bool(passes_for(char)) for char in word[0]) >= _LEAST:
            yield "mixes Latin letters with look-alikes of other alphabets", word.start()
