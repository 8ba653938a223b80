"""Checks whether the user said the words that a model quotes, and where. Pure.

The rules are those of DESIGN section 9: a quote is compared after NFKC, without default ignorables
(except joiners), with quotation marks and dashes unified, blanks collapsed, without case and outer
punctuation. It begins and ends at grapheme clusters and, in scripts with blanks between words, at
words.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

from agentd.core.spans import Span
from agentd.core.text import UNSPACED, at_first_use
from agentd.memory.facts.letters import clusters, fold_cluster, is_of_word

_ASCII_MARKS = str.maketrans('"`', "''")
_UNSPACED = at_first_use(f"[{UNSPACED}]")
_NO_TYPO = at_first_use(rf"[\d{UNSPACED}]")  # words with one of these must match exactly
_WORD = re.compile(r"\S+")
_GAP = re.compile(r"(?<!\s)\s*+\[?\.{3,}+\]?\s*+")  # an ellipsis, in NFKC form
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_LEAST_WORDS = 3
_LEAST_UNSPACED = 8  # the same for scripts without blanks, in characters
_TYPO_LETTERS = 5  # least letters of a word in which one may be wrong


class Searched:
    """A text in which quotes are searched; prepared once for all of them. A search takes time
    proportional to text and quote, whatever they contain.
    """

    def __init__(self, text: str, quotations: Sequence[Span] = ()) -> None:
        self._text = text
        self._quotations = quotations

    def find(self, quote: str) -> Span | None:
        """Return the span of the quote in the text, outside quotations; None if it is not there.

        One inner ellipsis may leave something out if both parts have three words or more and lie in
        one sentence. One word of five letters or more may be misspelt by one letter, other than the
        first.
        """
        wanted = _Folded(quote).trimmed()
        if not wanted:
            return None
        for found in self._find(wanted):
            if not any(found[0] < end and start < found[1] for start, end in self._quotations):
                return found
        return None

    @cached_property
    def _folded(self) -> _Folded:
        return _Folded(self._text)

    @cached_property
    def _words(self) -> list[tuple[int, str]]:
        """The words of the folded text without outer punctuation, each with its offset."""
        words = []
        for found in _WORD.finditer(self._folded.text):
            word = _trim(found[0])
            words.append((found.start() + found[0].index(word), word))
        return words

    def _find(self, wanted: str) -> Iterator[Span]:
        for start, end in self._places(wanted):
            yield self._folded.original(start, end)
        yield from self._with_gap(wanted)
        yield from self._with_typo(wanted)

    @cached_property
    def _sentence_ends(self) -> list[int]:
        return [found.start() for found in _SENTENCE_END.finditer(self._text)]

    def _places(self, wanted: str) -> Iterator[Span]:
        for at in _occurrences(wanted, self._folded.text):
            if self._folded.is_whole(at, at + len(wanted)):
                yield at, at + len(wanted)

    def _with_gap(self, wanted: str) -> Iterator[Span]:
        gaps = list(_GAP.finditer(wanted))
        if len(gaps) != 1:
            return
        head, tail = (_trim(w) for w in (wanted[: gaps[0].start()], wanted[gaps[0].end() :]))
        if is_short(head) or is_short(tail):
            return
        tails = self._places(tail)
        behind: Span | None = (-1, -1)
        for start, end in self._places(head):
            while behind is not None and behind[0] < end:
                behind = next(tails, None)
            if behind is None:
                return
            first, last = self._folded.original(start, end), self._folded.original(*behind)
            ends = self._sentence_ends
            if bisect_left(ends, first[1]) == bisect_left(ends, last[0]):
                yield first[0], last[1]

    def _with_typo(self, wanted: str) -> Iterator[Span]:
        words = [_trim(word) for word in wanted.split(" ")]
        said = self._words
        spoken = [word for _, word in said]
        right = _common(words, spoken)  # from each offset on, and up to each offset
        left = _common(words[::-1], spoken[::-1])[::-1]
        for at in range(len(said) - len(words) + 1):
            last = at + len(words) - 1
            wrong = right[at]
            if wrong + left[last] != len(words) - 1:
                continue  # the words match, or more than one differs
            if _is_misspelt(words[wrong], spoken[at + wrong]):
                yield self._folded.original(said[at][0], said[last][0] + len(said[last][1]))


def find(quote: str, text: str, quotations: Sequence[Span] = ()) -> Span | None:
    """See `Searched.find`."""
    return Searched(text, quotations).find(quote)


def is_short(quote: str) -> bool:
    """Whether a quote has fewer than three words, or eight characters in a script without blanks;
    so few words have a meaning only as the answer to a question.
    """
    words = [word for one in _Folded(quote).text.split() if (word := _trim(one))]
    unspaced = sum(len(_UNSPACED().findall(word)) for word in words)
    spaced = sum(not _UNSPACED().search(word) for word in words)
    return spaced / _LEAST_WORDS + unspaced / _LEAST_UNSPACED < 1


def sentence_around(text: str, span: Span) -> Span:
    """Return the span of the sentence or sentences that `span` lies in, without outer blanks."""
    start, end = 0, len(text)
    for found in _SENTENCE_END.finditer(text):
        if found.end() <= span[0]:
            start = found.end()
        elif found.end() >= span[1]:
            end = found.end()
            break
    while start < span[0] and text[start].isspace():
        start += 1
    while end > span[1] and text[end - 1].isspace():
        end -= 1
    return start, end


def _occurrences(wanted: str, text: str) -> Iterator[int]:
    """Yield all offsets of `wanted`, overlapping ones included."""
    first = text.find(wanted)
    if first < 0:
        return
    yield first
    rest = text[first + 1 :]
    if wanted in rest:  # else the linear-time search is not needed
        same = _common(wanted, rest)
        yield from (first + 1 + at for at, many in enumerate(same) if many == len(wanted))


def _common(wanted: Sequence[str], text: Sequence[str]) -> list[int]:
    """Return for each offset of the text the length of the common prefix of `wanted` and the text
    from there (Z algorithm).
    """
    both = [*wanted, None, *text]
    same = [0] * len(both)  # length of the common prefix with the whole, by offset
    begin = end = 0  # bounds of the rightmost match of a prefix
    for at in range(1, len(both)):
        size = min(end - at, same[at - begin]) if at < end else 0
        if at + size >= end:
            while at + size < len(both) and both[size] == both[at + size]:
                size += 1
            begin, end = at, at + size
        same[at] = size
    return same[len(wanted) + 1 :]


class _Folded:
    """A folded text, with the original span of each of its characters."""

    def __init__(self, text: str) -> None:
        letters: list[str] = []
        self._starts, self._ends = array("L"), array("L")
        # In ASCII each character is a cluster, except a two-character line end.
        parts = enumerate(text) if text.isascii() else clusters(text)
        for start, cluster in parts:
            for letter in _comparable(cluster):
                if letter == " " and (not letters or letters[-1] == " "):
                    continue
                letters.append(letter)
                self._starts.append(start)
                self._ends.append(start + len(cluster))
        self.text = "".join(letters)

    def original(self, start: int, end: int) -> Span:
        """Return the original span of a span of the folded text."""
        return self._starts[start], self._ends[end - 1]

    def is_whole(self, start: int, end: int) -> bool:
        """Whether a part begins and ends between grapheme clusters and between words."""
        return not any(self._is_within(at) for at in (start, end) if 0 < at < len(self.text))

    def trimmed(self) -> str:
        """Return the text without outer punctuation and blanks, but with whole grapheme
        clusters.
        """
        start, end = _inner(self.text)
        while self._splits_character(start):
            start -= 1
        while self._splits_character(end):
            end += 1
        return self.text[start:end]

    def _splits_character(self, at: int) -> bool:
        return 0 < at < len(self.text) and self._starts[at - 1] == self._starts[at]

    def _is_within(self, at: int) -> bool:
        if self._splits_character(at):
            return True
        sides = self.text[at - 1], self.text[at]
        return all(_is_of_word(c) and not _UNSPACED().match(c) for c in sides)


def _is_of_word(letter: str) -> bool:
    if letter.isascii():
        return letter.isalnum()
    return is_of_word(letter)


def _without_kinds(cluster: str) -> str:
    """Return the cluster with one kind of quotation mark and of dash, without default
    ignorables.
    """
    if cluster.isascii():
        return cluster.translate(_ASCII_MARKS)
    return fold_cluster(cluster)


@lru_cache(maxsize=4_096)
def _comparable(cluster: str) -> str:
    """Return the folded form of a grapheme cluster: a blank for any space, "" for ignorables."""
    shown = _without_kinds(cluster)
    if shown.isspace():
        return " "
    shown = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())
    # Some accents decompose to a blank and a mark: the blank is dropped.
    return "".join(c for c in shown if not c.isspace())


def _trim(words: str) -> str:
    """Return words without outer punctuation and blanks."""
    start, end = _inner(words)
    return words[start:end]


def _inner(words: str) -> Span:
    start, end = 0, len(words)
    while start < end and _is_outer(words[start]):
        start += 1
    while end > start and _is_outer(words[end - 1]):
        end -= 1
    return start, end


def _is_outer(letter: str) -> bool:
    return letter.isspace() or unicodedata.category(letter).startswith("P")


def _is_misspelt(mine: str, theirs: str) -> bool:
    """Whether two words differ by one added, missing or exchanged letter."""
    short, long = sorted((mine, theirs), key=len)
    if len(long) - len(short) > 1 or short[:1] != long[:1]:
        return False
    if sum(map(str.isalpha, short)) < _TYPO_LETTERS or _NO_TYPO().search(f"{short} {long}"):
        return False
    same = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), None)
    if same is None:
        return True
    rest = short[same:] if len(short) < len(long) else short[same + 1 :]
    return rest == long[same + 1 :]
