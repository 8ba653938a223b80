"""Letters of other scripts that look like Latin ones. Pure; `lookalikes.txt` names the table's
source.

Only words that mix scripts are found: a word that is entirely Cyrillic may simply be Russian.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from agentd.core.screening.ignorable import IGNORABLE, idle
from agentd.core.text import UNSPACED, at_first_use

# Combining marks and invisible characters do not end a word.
_UNSEEN = f"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f{IGNORABLE}]*+"
_WORD = at_first_use(rf"(?:[^\W{UNSPACED}]{_UNSEEN})++")
_LATIN = re.compile(r"[A-Za-z]")
_LEAST = 4  # fewest letters of a word; shorter ones are units and symbols: kΩ, Δx
# Kinds of decomposition that keep the shape: neither superscripts nor framed letters.
_SAME_SHAPE = ("<font>", "<wide>", "<compat>")


@cache
def latin_letters() -> Mapping[str, str]:
    """Return the Latin letter that each look-alike resembles."""
    table = (files("agentd.core.screening") / "lookalikes.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in table.splitlines() if not line.startswith("#"))
    return {char: latin for latin, chars in rows for char in chars}


@cache
def passes_for(char: str) -> str:
    """Return the Latin letters that a character looks like; "" if there are none, or if it is ASCII
    itself. Sources are the table of look-alikes and Unicode's compatibility decompositions.
    """
    if char.isascii():
        return ""
    if latin := latin_letters().get(char):
        return latin
    if not unicodedata.decomposition(char).startswith(_SAME_SHAPE):
        return ""
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain.isascii() and plain.isalpha() else ""


def mixed_script_words(text: str) -> Iterator[re.Match[str]]:
    """Yield the words that contain both Latin letters and look-alikes."""
    if text.isascii():
        return
    for word in _WORD().finditer(text):
        if not word[0].isascii() and _LATIN.search(word[0]) and any(map(passes_for, word[0])):
            yield word


def suspicious_words(text: str) -> Iterator[tuple[str, int]]:
    """Yield (reason, offset) of the mixed words that are long enough to be suspicious."""
    for word in mixed_script_words(text):
        if sum(char.isalpha() or bool(passes_for(char)) for char in word[0]) >= _LEAST:
            yield "mixes Latin letters with look-alikes of other alphabets", word.start()


_WITHOUT_SHAPE = frozenset("\u2800\U0001d159")  # signs that are invisible, yet are no blanks
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def spell_out(text: str) -> str:
    """Return the text in a form in which nothing is hidden, for somebody who has to judge it. Each
    character that is invisible, changes the direction of text, or looks like a Latin letter within
    a Latin word is shown as its code point, `⟨U+202E⟩`. Characters that scripts and emoji need
    stay.
    """
    if text.isascii() and text.isprintable():
        return text
    disguised, unseen = _lookalike_offsets(text), idle(text)
    parts = [
        f"{char if place in disguised else ''}⟨U+{ord(char):04X}⟩"
        if place in disguised or place in unseen or _is_hidden(char)
        else char
        for place, char in enumerate(text)
    ]
    return "".join(parts)


def _is_hidden(char: str) -> bool:
    """Whether the character is hidden wherever it stands; default ignorables are left to `idle`."""
    if char in "\n\t" or (" " <= char <= "~"):
        return False
    if char in _WITHOUT_SHAPE:
        return True
    return unicodedata.category(char) in _HIDDEN and char not in "\u200c\u200d\u180e"


def _lookalike_offsets(text: str) -> frozenset[int]:
    """Return the offsets of look-alikes in words that also have Latin letters."""
    return frozenset(
        word.start() + place
        for word in mixed_script_words(text)
        for place, char in enumerate(word[0])
        if passes_for(char)
    )
