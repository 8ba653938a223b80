"""Words that are to be erased wherever they stand.

They are recognised whatever their case, accents, width and punctuation are, behind JSON's escapes and
over the ends of lines. Words that were encoded otherwise (percent signs, base64) are not.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MASK = "[forgotten]"

_UNSPACED = (  # scripts that put no blanks between words: each letter is taken as a word
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf])")
_UNSEEN = re.compile("[\u0300-\u036f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*]*+(?=\s|\\n|\Z)|(?<![。！？])[。！？]++[”』」]?|\n|\\n"
)
_ABBREVIATIONS = "dr mr mrs ms st no nr prof vs eg ie ca bzw inkl ggf evtl str tel"
_SHORT = frozenset(_ABBREVIATIONS.split())
_LOOKS_BACK = 8
_NEWLINE = "\\n"  # as JSON spells it
_PIECE = re.compile(r"(?s).{1000}\S*\s*|.+")  # of a sentence that does not end
_HEAD = re.compile(r"[\s>]*(?:(?:[-*+•–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_TELLING = 10  # letters from which on a word is found inside longer ones, too; 8 with a digit
_DIALLED = 5  # digits from which on a number is found however it is grouped
_FEW = 50  # words that are looked for one by one
_ENDED = 3  # letters from which on a companion may have an ending


@dataclass(frozen=True, slots=True)
class Mark:
    """Exact words at one place that are to be erased there: `path:line`, or `sessions/KEY.jsonl:line`."""

    where: str
    span: str


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to be erased. `spans` are exact words that are masked wherever they stand, `marks` words
    that are masked at their place alone, `sentences` words whose whole sentences go.
    """

    spans: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Needles:
    """What a forgotten fact is recognised by.

    `phrases` are whole sentences: the fact's, and those it was said in. A value is a name, a number or
    another telling word, with the words of which at least one must stand in the same sentence for it
    to count; with none, the value alone is enough.
    """

    phrases: tuple[str, ...]
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def masked(self, text: str) -> str:
        """The text with MASK in the place of each sentence or line that says it, in time
        proportional to its length. Bullets and blanks around it stay; the rest is as it was.
        """
        pieces: list[str] = []
        done = 0
        for start, end in self.spans(text):
            pieces += (text[done:start], MASK)
            done = end
        return "".join(pieces) + text[done:] if pieces else text

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """Where sentences stand that say it, without bullets and blanks around them."""
        needles = _candidates(self, text)
        if not needles:
            return ()
        sentences = _Sentences(text)
        guilty: set[int] = set()
        for needle in needles:
            for found in needle.pattern.finditer(sentences.words):
                under = sentences.under(found.start(), found.end())
                near = needle.companions
                if near is None or any(near.search(sentences.whole(index)) for index in under):
                    guilty.update(under)
        bare = (_bare(text, *sentences.spans[index]) for index in sorted(guilty))
        return tuple((start, end) for start, end in bare if text[start:end] != MASK)

    def stand_in(self, text: str) -> bool:
        """Whether a sentence of the text says it."""
        return bool(self.spans(text))

    def glimpsed(self, text: str) -> bool:
        """Whether it may be said in the text, or in strings of which it is the JSON: False is sure."""
        return bool(_candidates(self, text))

    def conceivable(self, text: str) -> bool:
        """Whether the words of one of them stand in the text, in whatever order and with whatever
        between them; False is sure for all that can be put together of its words.
        """
        marks = _search(self).marks
        plain = _plain(text)
        return not marks or any(all(word in plain for word in mark) for mark in marks)

    def within(self, value: Any) -> Any:
        """Plain data, as JSON has it, with all of its strings masked, the names of fields too."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, Mapping):
            return {self.masked(str(name)): self.within(inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.within(inner) for inner in value]
        return value

    def as_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "phrases": list(self.phrases),
            "values": [[value, list(companions)] for value, companions in self.values],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Needles:
        """What `as_json` gave."""
        values = tuple((str(value), tuple(words)) for value, words in data["values"])
        return cls(tuple(data["phrases"]), values)


def folded(text: str) -> str:
    """The words of the text with one blank between them, in the form in which they are compared."""
    return " ".join(_WORD.findall(_plain(text)))


def _plain(text: str) -> str:
    """The text without what makes no difference, but with what stands between its words."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKD", text))
        text = _UNSEEN.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return text.casefold()


class _Sentences:
    """A text by sentences, and all of its words in one line. Very long sentences are cut."""

    def __init__(self, text: str) -> None:
        self.spans: list[tuple[int, int]] = []
        self._groups: list[int] = []
        self._starts: list[int] = []
        self._wholes: dict[int, list[str]] = {}
        self._joined: dict[int, str] = {}
        line: list[str] = []
        at = 1
        for group, start, end in _pieces(text):
            if words := folded(text[start:end]):
                self.spans.append((start, end))
                self._groups.append(group)
                self._starts.append(at)
                self._wholes.setdefault(group, []).append(words)
                line.append(words)
                at += len(words) + 1
        self.words = f" {' '.join(line)} "

    def under(self, start: int, end: int) -> range:
        """The sentences over which this part of the words goes."""
        first = max(0, bisect_right(self._starts, start) - 1)
        return range(first, max(first, bisect_right(self._starts, end - 1) - 1) + 1)

    def whole(self, index: int) -> str:
        """The words of the sentence, with those it was cut from."""
        group = self._groups[index]
        if group not in self._joined:
            self._joined[group] = f" {' '.join(self._wholes[group])} "
        return self._joined[group]


@dataclass(frozen=True, slots=True)
class _Needle:
    """How one is looked for in folded words. It is there only if all of `words` are, which is quicker to
    know; a `loose` one may stand within words.
    """

    pattern: re.Pattern[str]
    words: frozenset[str]
    loose: bool
    companions: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """Needles by a word that they begin or end with, and those that have none. All words of one of
    `marks` stand in every text that has a needle; there are none where they would not make it quicker.
    """

    by_word: Mapping[str, tuple[_Needle, ...]]
    loose: tuple[_Needle, ...]
    marks: tuple[tuple[str, ...], ...]


def _candidates(needles: Needles, text: str) -> list[_Needle]:
    """The needles whose words stand in the text, whatever stands with them."""
    search = _search(needles)
    plain = _plain(text)
    if search.marks and not any(all(word in plain for word in mark) for mark in search.marks):
        return []
    found = _WORD.findall(plain)
    words = frozenset(found)
    line = f" {' '.join(found)} "
    near = [
        needle
        for word in words & search.by_word.keys()
        for needle in search.by_word[word]
        if needle.words <= words and needle.pattern.search(line)
    ]
    return near + [needle for needle in search.loose if needle.pattern.search(line)]


@lru_cache(maxsize=16)
def _search(needles: Needles) -> _Search:
    wanted: list[tuple[str, tuple[str, ...]]] = [(phrase, ()) for phrase in needles.phrases]
    by_word: dict[str, tuple[_Needle, ...]] = {}
    loose: list[_Needle] = []
    marks: set[tuple[str, ...]] = set()
    for text, companions in (*wanted, *needles.values):
        words = folded(text)
        near = [word for companion in companions if (word := folded(companion))]
        needle = _needle(words, near)
        if needle is None:
            continue
        marks.add(_mark(words))
        if needle.loose:
            loose.append(needle)
            continue
        last = words.rpartition(" ")[2]
        for word in {max(needle.words, key=len)} if needle.words else {last, f"{last}s"}:
            by_word[word] = (*by_word.get(word, ()), needle)
    return _Search(by_word, tuple(loose), tuple(marks) if len(marks) <= _FEW else ())


def _mark(words: str) -> tuple[str, ...]:
    """What is in every text with these words: each of them, the longest first, but of a number, which may
    be grouped in another way, its first digit.
    """
    bare = words.replace(" ", "")
    if bare.isdecimal():
        return (bare[0],)
    return tuple(sorted(dict.fromkeys(words.split(" ")), key=len, reverse=True))


def _needle(words: str, companions: list[str]) -> _Needle | None:
    bare = words.replace(" ", "")
    near = re.compile("|".join(map(_companion, companions))) if companions else None
    if not bare:
        return None
    if bare.isdecimal() and len(bare) >= _DIALLED:
        pattern = re.compile(rf"(?<!\d){' ?'.join(bare)}(?!\d)")
        return _Needle(pattern, frozenset(), loose=True, companions=near)
    has_digit = any(map(str.isdigit, bare))
    if " " not in words and len(words) >= (_TELLING - 2 if has_digit else _TELLING):
        return _Needle(re.compile(re.escape(words)), frozenset(), loose=True, companions=near)
    pattern = re.compile(f"(?<= ){re.escape(words)}s?(?= )")
    return _Needle(pattern, frozenset(words.split(" ")[:-1]), loose=False, companions=near)


def _companion(word: str) -> str:
    """With any ending, or without that of the third person: who likes something says “I like”."""
    if len(word) < _ENDED:
        return f" {re.escape(word)} "
    bare = word.removesuffix("s")
    others = rf"| {re.escape(bare)} " if _ENDED <= len(bare) < len(word) else ""
    return rf" {re.escape(word)}\w{{0,3}} {others}"


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else " "


def _pieces(text: str) -> Iterator[tuple[int, int, int]]:
    """Number of the sentence, start and end of each piece."""
    for group, (start, end) in enumerate(_ends(text)):
        for piece in _PIECE.finditer(text, start, end):
            yield group, piece.start(), piece.end()


def _ends(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _END.finditer(text):
        if found[0] == "." and _goes_on(text, found.start()):
            continue
        yield start, found.end()
        start = found.end()
    if start < len(text):
        yield start, len(text)


def _goes_on(text: str, dot: int) -> bool:
    """Whether the full stop ends a short form, an initial or the number of a list."""
    before = text[max(0, dot - _LOOKS_BACK) : dot].split()
    word = before[-1].casefold().lstrip("(\"'").replace(".", "") if before else ""
    is_lone = len(word) == 1 and word.isalnum() and word != "i"
    return is_lone or word in _SHORT


def _bare(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without bullet and blanks."""
    head = _HEAD.match(text, start, end)
    first = head.end() if head else start
    last = end
    while last > first and (text[last - 1].isspace() or text.endswith(_NEWLINE, first, last)):
        last -= 1 if text[last - 1].isspace() else len(_NEWLINE)
    return (first, last) if first < last else (start, end)
