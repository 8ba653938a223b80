"""Words of texts and queries, the way the index's tokenizer sees them."""

from __future__ import annotations

import re
import unicodedata

MAX_QUERY = 10_000  # characters that are looked at
MAX_TERMS = 48

# Scripts written without spaces, and Hangul, whose words carry their particles: the tokenizer would
# make one word of a whole run. Kana, Han, Hangul, Thai, Lao, Burmese and Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_TERM = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")


def grams(text: str) -> str:
    """The overlapping pairs of letters in all unspaced runs, and each run's last letter."""
    return " ".join(gram for run in _RUN.findall(text) for gram in [*_pairs(run), run[-1]])


def query_terms(query: str) -> tuple[str, ...]:
    """The distinct words of a query, folded, unspaced runs as pairs. Long queries are cut."""
    terms: dict[str, None] = {}
    for found in _TERM.finditer(unicodedata.normalize("NFC", query[:MAX_QUERY])):
        word = found.group()
        terms.update(dict.fromkeys(_pairs(word) or [word] if _RUN.match(word) else [fold(word)]))
        if len(terms) >= MAX_TERMS:
            break
    return tuple(term for term in terms if term)[:MAX_TERMS]


def text_terms(text: str) -> frozenset[str]:
    """All that a query's terms can match in a text."""
    if text.isascii():
        return frozenset(_TERM.findall(text.lower()))
    found: set[str] = set()
    for word in _TERM.findall(unicodedata.normalize("NFC", text)):
        if _RUN.match(word):
            found.update(word, _pairs(word))
        else:
            found.add(fold(word))
    return frozenset(found)


def is_prefix(term: str) -> bool:
    """Whether the term is a lone unspaced letter, which matches every pair that it begins."""
    return len(term) == 1 and _RUN.match(term) is not None


def match_expression(terms: tuple[str, ...]) -> str:
    """The full-text query for any of the terms, which hold letters and digits only."""
    return " OR ".join(f'"{t}"*' if is_prefix(t) else f'"{t}"' for t in terms)


def fold(word: str) -> str:
    """The word without case and diacritics."""
    if word.isascii():
        return word.lower()
    lowered = unicodedata.normalize("NFD", word.lower())
    return unicodedata.normalize("NFC", "".join(c for c in lowered if not unicodedata.combining(c)))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]
