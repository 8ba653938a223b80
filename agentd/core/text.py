"""Splitting and comparing text: scripts without blanks, sentences, folding. Pure.

Folding makes texts comparable: NFKC, no case, one kind of quotation mark and of dash, one blank for
any run of blanks and line ends, and no invisible characters. JSON escapes count as the characters
they stand for. Words in other encodings (percent signs, base64) are not recognised.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import accumulate
from typing import cast

from agentd.core.spans import Span, merge_spans

# Scripts that put no blanks between words, as the inside of a character class: Thai, Lao,
# Tibetan, Burmese, Khmer, Kana and Han, with the signs that belong to their words.
UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)


def at_first_use(pattern: str, flags: int = 0) -> Callable[[], re.Pattern[str]]:
    """Return a function that compiles the pattern at its first call: a pattern with the letters of
    all scripts takes two milliseconds, which start-up saves.
    """
    return cache(partial(re.compile, pattern, flags))


def with_properties(pattern: str) -> Callable[[], re.Pattern[str]]:
    """Return a function that compiles a pattern of the library `regex` at its first call. Such a
    pattern knows the properties of characters in Unicode, and is used like one of `re`. The library
    takes 2 MB; few texts need it.
    """
    return cache(partial(_with_properties, pattern))


def _with_properties(pattern: str) -> re.Pattern[str]:
    import regex

    return cast(re.Pattern[str], regex.compile(pattern))


# A possessive run of marks: backtracking into it would take quadratic time.
_END = re.compile(r"(?<![.!?…])[.!?…]++(?=\s|\Z)|[。！？]+|\n")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences in order, stripped, without those that have no letter or digit.

    A sentence ends at punctuation before a blank, at the full stop of a script without blanks, or
    at its line end. Abbreviations are not recognised: “Dr. Almeida” is two sentences, which a
    search for words tolerates.
    """
    start = 0
    for found in _END.finditer(text):
        yield from _sentence(text[start : found.end()])
        start = found.end()
    yield from _sentence(text[start:])


def _sentence(text: str) -> Iterator[str]:
    if any(map(str.isalnum, text)):
        yield text.strip()


_TAGS = range(0xE0000, 0xE0200)
_SAME = str.maketrans(
    {
        **dict.fromkeys('"`´‘’‚‛“”„‟«»‹›′″〝〞〟「」『』', "'"),
        **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
        **dict.fromkeys(map(chr, (0xAD, 0x34F, 0x61C, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0))),
        **dict.fromkeys(map(chr, range(0x180B, 0x1810))),
        **dict.fromkeys(map(chr, (0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F)))),
        **dict.fromkeys(map(chr, range(0x2060, 0x2070))),
        **dict.fromkeys(map(chr, (*range(0xFE00, 0xFE10), *_TAGS))),
    }
)
# Matches the characters that `translate` changes: nearly all others stay, and `translate` would
# look up each of them.
_BEYOND_ASCII = "".join(chr(code) for code in _SAME if 127 < code < _TAGS[0])
_OTHERS = re.compile(f"[{_BEYOND_ASCII}{chr(_TAGS[0])}-{chr(_TAGS[-1])}]+")
_CODED = r"(?:\\{1,8}u[0-9a-fA-F]{4})+"
_QUOTED = r"\\{1,8}[\"/]"
_BREAK = r"\\{1,8}[nrtbf]"
_MARKS = (  # marks, visible or not, that belong to the letter before them
    "[\u0300-\u036f\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe00-\ufe2f"
    "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
)
_PIECE = re.compile(rf"\S{{1,64}}{_MARKS}")
_ESCAPED_PIECE = re.compile(
    rf"(?P<gap>{_BREAK})|(?:{_CODED}|{_QUOTED}|(?!{_BREAK})\S){{1,64}}{_MARKS}"
)
_UNIT = re.compile(rf"(?s){_CODED}|{_QUOTED}|.{_MARKS}")
# Begins with what all of them begin with, so that a search leaps from backslash to backslash.
_ESCAPE = re.compile(
    r"""(?x) \\{1,8} (?:
        (?P<code> u[0-9a-fA-F]{4} (?: \\{1,8}u[0-9a-fA-F]{4} )* ) | ["/] | (?P<gap> [nrtbf] )
    )"""
)
_HEX = re.compile(r"u([0-9a-fA-F]{4})")
_UNSPACED = at_first_use(f"[{UNSPACED}]")
# Matches characters for which folding is not simply one character to one: those that vanish,
# combine, or become a blank.
_UNUSUAL = at_first_use(
    r"[^\x00-\x5b\x5d-\xa7\xa9-\xac\xae\xb0-\xb7\xb9-\u024f\u0400-\u0482\u048a-\u052f"
    r"\u2010-\u2016\u2018-\u2026\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff]"
)


class FoldedText:
    """A folded text, `text`, from which spans can be mapped back to the original."""

    __slots__ = ("_begins", "_original", "_pieces", "text")

    def __init__(self, original: str) -> None:
        self._original = original
        self._begins: list[int] = []  # where each piece begins in `text`
        self._pieces: list[Span] = []
        self.text = self._fold()

    def places(self, words: str) -> Iterator[Span]:
        """Yield the spans of the original at which the folded `words` occur, as whole words in
        scripts that put blanks between words.
        """
        at = self.text.find(words) if words else -1
        while at >= 0:
            end = at + len(words)
            if not self._is_within_word(at) and not self._is_within_word(end):
                yield self._first(at), self._last(end - 1)
                at = self.text.find(words, end)
            else:
                at = self.text.find(words, at + 1)

    def _fold(self) -> str:
        pattern = _ESCAPED_PIECE if "\\" in self._original else _PIECE
        known: dict[str, str] = {}
        parts: list[str] = []
        size, ended = 0, -1
        for found in pattern.finditer(self._original):
            if found.lastgroup:
                continue
            piece = found[0]
            folded = known.get(piece)
            if folded is None:
                folded = known[piece] = letters(piece).replace(" ", "")
            is_glued = found.start() == ended
            if not folded:
                ended = found.end() if is_glued else ended
                continue
            if parts and not is_glued:
                parts.append(" ")
                size += 1
            self._begins.append(size)
            self._pieces.append(found.span())
            parts.append(folded)
            size += len(folded)
            ended = found.end()
        return "".join(parts)

    def _is_within_word(self, at: int) -> bool:
        if not 0 < at < len(self.text):
            return False
        return _is_spaced(self.text[at - 1]) and _is_spaced(self.text[at])

    def _first(self, at: int) -> int:
        """Return where the original character begins that produced this folded character."""
        return self._unit(at)[0]

    def _last(self, at: int) -> int:
        """Return where the original character ends that produced this folded character."""
        return self._unit(at)[1]

    def _unit(self, at: int) -> Span:
        number = bisect_right(self._begins, at) - 1
        start, end = self._pieces[number]
        done = self._begins[number]
        unit = (start, end)
        for found in _UNIT.finditer(self._original, start, end):
            unit = found.span()
            done += len(letters(found[0]).replace(" ", ""))
            if done > at:
                break
        return unit


def plain(text: str) -> str:
    """Return the folded text without the mapping, which is faster. Words that are not in it are not
    in `FoldedText` either, so it serves to rule texts out.
    """
    return " ".join(letters(text).split())


def stretches(text: str, words: Mapping[str, int]) -> Sequence[Span]:
    """Return the spans of whole lines in which expressions may occur, so that the rest of a long
    text need not be folded. `words` maps a word of each expression to the largest number of words
    the expression has.
    """
    if _UNUSUAL().search(text):
        return [(0, len(text))]
    lines = letters(text).split("\n")
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    found = []
    for number, line in enumerate(lines):
        if most := max((count for word, count in words.items() if word in line), default=0):
            first, end = number - _lines(reversed(lines[:number]), most), number + 1
            end += _lines(lines[end:], most)
            found.append((starts[first], starts[end] - 1))
    return merge_spans(found)


def _lines(lines: Iterable[str], most: int) -> int:
    """Return how many of the first lines together have `most` words; all if they have fewer."""
    count = 0
    for line in lines:
        if most <= 0:
            break
        most -= len(line.split())
        count += 1
    return count


def shorten(text: str, most: int, why: str = "") -> str:
    """Return the text, or its first `most` characters and a line that says how many are left out
    (and `why`).
    """
    left = len(text) - most
    if left <= 0:
        return text
    return f"{text[:most]}\n[… {left} of {len(text)} characters left out{why and f' {why}'}]"


def is_unspaced(text: str) -> bool:
    """Whether the text has letters of a script that puts no blanks between words."""
    return not text.isascii() and _UNSPACED().search(text) is not None


def trim_punctuation(words: str) -> str:
    """Return folded words without surrounding punctuation and blanks; if there is nothing else, the
    stripped words.
    """
    start, end = 0, len(words)
    while start < end and _is_outer(words[start]):
        start += 1
    while end > start and _is_outer(words[end - 1]):
        end -= 1
    return words[start:end] or words.strip()


def _is_spaced(letter: str) -> bool:
    """Whether the letter belongs to a word of a script that puts blanks between words."""
    is_letter = letter.isalnum() or unicodedata.category(letter).startswith("M")
    return is_letter and not _UNSPACED().match(letter)


def _is_outer(letter: str) -> bool:
    return letter.isspace() or unicodedata.category(letter).startswith("P")


def letters(text: str) -> str:
    """Return the text with each letter folded but all blanks kept: every word of `plain` occurs in
    it.
    """
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    if text.isascii():
        return text.lower().replace('"', "'").replace("`", "'")
    text = unicodedata.normalize("NFKC", _same(text))
    return _same(unicodedata.normalize("NFKC", text.casefold()))


def _same(text: str) -> str:
    """Map characters that count as equal to one of them."""
    text = text.replace('"', "'").replace("`", "'")
    return _OTHERS.sub(lambda found: found[0].translate(_SAME), text)


def _unescape(found: re.Match[str]) -> str:
    if found["gap"]:
        return " "
    if not found["code"]:
        return found[0][-1]
    units = "".join(chr(int(code, 16)) for code in _HEX.findall(found["code"]))
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def well_formed(text: str) -> str:
    """Return the text with a question mark for every lone surrogate: a model can write one, but no
    database column can hold it.
    """
    return text.encode(errors="replace").decode()
