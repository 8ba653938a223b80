"""Letters of other scripts that pass for Latin ones. Pure; `lookalikes.txt` says where the table is from.

What mixes no scripts is not found: a word that is Cyrillic from end to end may be a Russian one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter ones are units and symbols: kΩ, Δx
_LATIN = re.compile(r"[A-Za-z]")


@cache
def latin_letters() -> Mapping[str, str]:
    """The Latin letter that each look-alike passes for."""
    table = (files("agentd.screening") / "lookalikes.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in table.splitlines() if not line.startswith("#"))
    return {char: latin for latin, chars in rows for char in chars}


def disguised(text: str) -> Iterator[tuple[str, int]]:
    """Words of Latin letters and look-alikes of them: the reason, and the index of the word."""
    if text.isascii():
        return
    table = latin_letters()
    for word in _WORD.finditer(text):
        if not word[0].isascii() and _LATIN.search(word[0]) and any(c in table for c in word[0]):
            yield "mixes Latin letters with look-alikes of other alphabets", word.start()
