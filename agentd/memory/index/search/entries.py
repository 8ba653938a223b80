"""Computes the index entry of a chunk: terms, digest and traits.

`traits` are the features of a text that ranking needs. They are stored, so that a start need not
read texts; a new `words.VERSION` makes them be computed again.
"""

from __future__ import annotations

import hashlib
import re
import struct
from datetime import date

from agentd.core.search import Chunk, Entry
from agentd.memory.index.ranking import temporal
from agentd.memory.index.search import words
from agentd.memory.index.search.units import embedded_text, head_terms

UNDATED = -1  # the day of an undated chunk

# Version, number of head terms, tokens, first and last day the text names, flags.
TRAITS = struct.Struct("<HIIiiB")
QUESTION, ASKS = 1, 2

_QUESTION = re.compile(r"[?？؟](?=[\s*_\"')\]]|$)")
_SENTENCE = re.compile(r"[^.!?？؟。！…\n]++[.!?？؟。！…]*+")
_WORD = re.compile(r"\w")
_ADDRESS = re.compile(r"\b\w++://\S+")


def entry(chunk: Chunk) -> Entry:
    """Return the index entry of a chunk."""
    head = head_terms(chunk)
    terms = " ".join([*head, *words.terms(chunk.text)])
    said = embedded_text(chunk).encode(errors="replace")
    digest = hashlib.blake2b(said, digest_size=16).digest()
    return Entry(chunk, terms, digest, _traits(chunk, len(head)))


def is_current(traits: bytes) -> bool:
    """Whether traits were computed by the present rules."""
    return len(traits) == TRAITS.size and TRAITS.unpack(traits)[0] == words.VERSION


def head_size(traits: bytes) -> int:
    """Return how many of a chunk's terms are head terms (day, speaker, headings). Those come
    first.
    """
    size: int = TRAITS.unpack(traits)[1]
    return size


def _traits(chunk: Chunk, head: int) -> bytes:
    text = chunk.text
    folded = words.fold(text)
    told = temporal.dates_in(f"{words.fold(chunk.context)} {folded}", chunk.date)
    first, last = (None, None) if told is None else told
    flags = (QUESTION if _QUESTION.search(text[-200:]) else 0) | (ASKS if _only_asks(chunk) else 0)
    tokens = words.count_tokens(text)
    return TRAITS.pack(words.VERSION, head, tokens, _ordinal(first), _ordinal(last), flags)


def _only_asks(chunk: Chunk) -> bool:
    """Whether every sentence of a chunk is a question, so that it contains no answer."""
    said = chunk.text.removeprefix(f"{chunk.speaker}: ")
    if not _QUESTION.search(said[-200:]):
        return False
    parts = _SENTENCE.findall(_ADDRESS.sub("", said))
    sentences = [part for part in parts if _WORD.search(part)]
    return bool(sentences) and all(_QUESTION.search(one[-3:]) for one in sentences)


def _ordinal(day: date | None) -> int:
    return UNDATED if day is None else day.toordinal()
