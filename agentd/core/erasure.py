"""Finds and masks the words of an erasure in texts. Pure.

Words are compared after folding (core/text.py). Only the words themselves are masked; only what
`agentd memory forget TEXT` erases is masked together with its whole sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

from msgspec import Struct

from agentd.core.spans import Span, merge_spans, shift_spans
from agentd.core.text import FoldedText, is_unspaced, letters, plain, stretches, trim_punctuation

MASK = "[forgotten]"

_FEW = 50  # up to this many expressions are searched one by one, without an index
_TELLING = 3  # rarest words of an expression: a text without one of them is skipped
_LONG = 10_000  # texts longer than this are folded only around possible matches
_WORD = re.compile(r"[^\W_]+")
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*]*+(?=\s|\\n|\Z)|(?<![。！？])[。！？]++[”』」]?|\n|\\n"
)
_LONGEST = 1_000  # longest sentence that is masked as a whole, in characters
_PIECE = re.compile(rf"(?s).{{{_LONGEST}}}\S*\s*|.+")
_HEAD = re.compile(r"[\s>]*(?:(?:[-*+•–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_NEWLINE = "\\n"  # as JSON spells it


class PlacedWords(Struct, frozen=True):
    """Exact words to mask at one place only; see `StoredText.where`. `start` is the character
    offset in the row's text at which the words were; None means every occurrence at that place.
    """

    where: str
    span: str
    start: int | None = None


class Excerpt(Struct, frozen=True):
    """A text of which only `parts` are masked, wherever the whole text occurs: the parts alone may
    mean something else elsewhere.
    """

    text: str
    parts: tuple[str, ...]


class UntracedFact(Struct, frozen=True):
    """A forgotten fact whose other wordings are still to be found.

    `quotes` are the user's words that state it, `rows` the places that contain it in any case.
    Nothing written before `since` can state it. `asked` is the user's request to forget it, made at
    `asked_at`.
    """

    id: str
    text: str
    value: str = ""
    quotes: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    since: datetime | None = None
    asked: tuple[str, ...] = ()
    asked_at: datetime | None = None

    def as_json(self) -> list[Any]:
        """Return the value as JSON data."""
        since, asked_at = (at and at.isoformat() for at in (self.since, self.asked_at))
        told = [self.id, self.text, self.value, [*self.quotes], [*self.rows], since]
        return [*told, [*self.asked], asked_at]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> UntracedFact:
        """Read what `as_json` returned. Data of an older agentd lacks the request."""
        fact_id, text, value, quotes, rows, since, *more = data
        asked, asked_at = more or ((), None)
        known = fact_id, text, value, tuple(quotes), tuple(rows), _moment(since)
        return cls(*known, tuple(asked), _moment(asked_at))


class StoredText(Struct, frozen=True):
    """A stored text: a row, a paragraph of a note, an alert. `by_user` marks the user's own words.

    `where` is `PATH:LINE`, `sessions/KEY.jsonl:ROW`, `PATH@VERSION:LINE` for a former version of a
    file, `sessions/KEY.jsonl:summary`, `alerts:5`, `beats:7`, `jobs:3`, `job_runs:2` or
    `chat_history:TIME`.
    """

    where: str
    text: str
    at: datetime | None = None  # None: not known
    by_user: bool = False
    is_in_file: bool = False  # in the present version of a workspace file


class Erasure(Struct, frozen=True, dict=True):
    """What is to be erased.

    `spans` are exact words that are masked wherever they occur, `excerpts` texts of which parts are
    masked, `marks` words that are masked at one place only, `sentences` words whose whole sentences
    are masked, `ids` facts whose lines are removed from former versions of their page. `sought` are
    forgotten facts for which marks have still to be found.
    """

    spans: tuple[str, ...] = ()
    marks: tuple[PlacedWords, ...] = ()
    sentences: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    sought: tuple[UntracedFact, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()

    def found(self, text: str, *where: str, begins: int | None = None) -> tuple[Span, ...]:
        """Return the spans to mask in a text kept at these places, in order and without overlaps,
        in time proportional to its length.

        `begins` is the offset of the text in its row; without it, marks that have a `start` are
        ignored.
        """
        search = self._search
        marks = [mark for place in where for mark in search.marks.get(place, ())]
        wanted = search.candidates(text, [mark.words for mark in marks])
        if not wanted:
            return ()
        spans: list[Span] = []
        asked: list[Span] = []
        for start, end in [(0, len(text))] if marks else _stretches(text, wanted):
            folded = FoldedText(text[start:end])
            for words in wanted & search.spans:
                spans += shift_spans(folded.places(words.folded), start)
            for words in wanted & search.excerpts.keys():
                for first, last in shift_spans(folded.places(words.folded), start):
                    spans += shift_spans(_parts_in(text[first:last], search.excerpts[words]), first)
            for words in wanted & search.sentences:
                asked += shift_spans(folded.places(words.folded), start)
            for mark in marks:
                if mark.words in wanted:
                    spans += mark.places(folded, text, begins)
        if asked:
            spans += _sentences_around(text, asked)
        return merge_spans(span for span in spans if not _is_masked(text, span))

    def masked(self, text: str, *where: str, begins: int | None = None) -> str:
        """Return the text with each found span replaced by MASK."""
        return mask_spans(text, self.found(text, *where, begins=begins))

    @property
    def marked(self) -> frozenset[str]:
        """The places that have marks."""
        return frozenset(self._search.marks)

    def at(self, *where: str) -> Erasure:
        """Return an erasure of what is marked at these places, without the rest."""
        marks = self._search.marks
        return Erasure(spans=tuple(mark.span for place in where for mark in marks.get(place, ())))

    def stands_in(self, text: str) -> bool:
        """Whether the text contains something to erase, wherever it is kept."""
        return bool(self.found(text))

    def glimpsed(self, text: str, *where: str) -> bool:
        """Whether the text, or a string in it if it is JSON, may contain something to erase. False
        is certain, True may be wrong.
        """
        search = self._search
        marks = [mark.words for place in where for mark in search.marks.get(place, ())]
        return bool(search.candidates(text, marks))

    def within(self, value: Any, *where: str) -> Any:
        """Return JSON-like data with all strings masked, field names included."""
        if isinstance(value, str):
            return self.masked(value, *where)
        if isinstance(value, Mapping):
            return {
                self.masked(str(name), *where): self.within(inner, *where)
                for name, inner in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.within(inner, *where) for inner in value]
        return value

    def as_json(self) -> dict[str, Any]:
        """Return the value as JSON data."""
        return {
            "spans": list(self.spans),
            "marks": [[mark.where, mark.span, mark.start] for mark in self.marks],
            "sentences": list(self.sentences),
            "ids": list(self.ids),
            "sought": [one.as_json() for one in self.sought],
            "excerpts": [[one.text, [*one.parts]] for one in self.excerpts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Erasure:
        """Read what `as_json` returned; from data of an older agentd (`phrases`), only
        sentences.
        """
        if "phrases" in data:
            return cls(sentences=tuple(data["phrases"]))
        return cls(
            tuple(data["spans"]),
            tuple(PlacedWords(*mark) for mark in data["marks"]),
            tuple(data["sentences"]),
            tuple(data["ids"]),
            tuple(map(UntracedFact.from_json, data["sought"])),
            tuple(Excerpt(text, tuple(parts)) for text, parts in data.get("excerpts", ())),
        )

    @cached_property
    def _search(self) -> _Search:
        """The prepared search."""
        return _build_search(self)


def join_erasures(erasures: Iterable[Erasure]) -> Erasure:
    """Combine erasures into one."""
    several = tuple(erasures)
    return Erasure(
        tuple(dict.fromkeys(chain.from_iterable(one.spans for one in several))),
        tuple(dict.fromkeys(chain.from_iterable(one.marks for one in several))),
        tuple(dict.fromkeys(chain.from_iterable(one.sentences for one in several))),
        tuple(dict.fromkeys(chain.from_iterable(one.ids for one in several))),
        tuple(dict.fromkeys(chain.from_iterable(one.sought for one in several))),
        tuple(dict.fromkeys(chain.from_iterable(one.excerpts for one in several))),
    )


def mask_spans(text: str, spans: Iterable[Span]) -> str:
    """Return the text with MASK in place of each of these spans, which must be in order."""
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += (text[done:start], MASK)
        done = end
    return "".join(pieces) + text[done:] if pieces else text


def offset_after_masking(at: int, spans: Sequence[Span]) -> int:
    """Return the new offset of a character after these spans, in order, were replaced by MASK. A
    character within a span maps to the beginning of its MASK.
    """
    shift = 0
    for start, end in spans:
        if at < end:
            return min(at, start) + shift
        shift += len(MASK) - (end - start)
    return at + shift


def sentences_in(text: str) -> tuple[Span, ...]:
    """Return the spans of the sentences and lines of a text, without bullets and surrounding
    blanks. A very long sentence is split.
    """
    bare = (_bare(text, *piece) for piece in _pieces(text))
    return tuple(span for span in bare if span[0] < span[1])


class _PreparedWords(Struct, frozen=True):
    """An expression to search for, prepared. A text that lacks one of the `telling` words cannot
    contain it.
    """

    folded: str
    plain: str
    telling: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _PreparedWords:
        shown = trim_punctuation(plain(text))
        rarest = sorted(shown.split(), key=_rarity, reverse=True)[:_TELLING]
        return cls(trim_punctuation(FoldedText(text).text), shown, tuple(rarest))

    def stand_in(self, written: str) -> bool:
        """Whether the expression occurs in folded letters, whatever the blanks in them. True of few
        texts, so that splitting a long one into words would cost more than all else.
        """
        is_likely = all(map(written.__contains__, self.telling))
        return is_likely and _spaced(self.plain).search(written) is not None


class _PreparedMark(Struct, frozen=True):
    """A prepared mark."""

    words: _PreparedWords
    span: str
    start: int | None

    def places(self, folded: FoldedText, text: str, begins: int | None) -> list[Span]:
        """Return the spans of the mark in a text: all of them; or for a mark with a start, the one
        at its start, else (the row has changed) the nearest one.
        """
        if self.start is None:
            return list(folded.places(self.words.folded))
        if begins is None:
            return []
        at = self.start - begins
        if at >= 0 and text.startswith(self.span, at):
            return [(at, at + len(self.span))]
        if at < 0 or at > len(text) or text.startswith(MASK, at):
            return []
        found = sorted(folded.places(self.words.folded), key=lambda span: abs(span[0] - at))
        return found[:1]


class _Search(Struct, frozen=True):
    """A prepared erasure. Many expressions are indexed by their longest word."""

    spans: frozenset[_PreparedWords]
    sentences: frozenset[_PreparedWords]
    excerpts: Mapping[_PreparedWords, tuple[str, ...]]
    marks: Mapping[str, tuple[_PreparedMark, ...]]
    one_by_one: tuple[_PreparedWords, ...]
    by_word: Mapping[str, tuple[_PreparedWords, ...]]

    def candidates(self, text: str, marked: Iterable[_PreparedWords]) -> set[_PreparedWords]:
        """Return the expressions that may occur in the text, those of `marked` included."""
        loose = (*self.one_by_one, *marked)
        if not (loose or self.by_word):
            return set()
        written = letters(text)
        found = {one for one in loose if one.stand_in(written)}
        if self.by_word:
            shown = " ".join(written.split())
            for word in self.by_word.keys() & set(_WORD.findall(shown)):
                found.update(one for one in self.by_word[word] if one.plain in shown)
        return found


def _build_search(erasure: Erasure) -> _Search:
    spans, sentences = _words(erasure.spans), _words(erasure.sentences)
    excerpts: dict[_PreparedWords, tuple[str, ...]] = {}
    for excerpt in erasure.excerpts:
        if (words := _PreparedWords.of(excerpt.text)).folded:
            excerpts[words] = (*excerpts.get(words, ()), *excerpt.parts)
    marks: dict[str, tuple[_PreparedMark, ...]] = {}
    for mark in erasure.marks:
        if (words := _PreparedWords.of(mark.span)).folded:
            placed = _PreparedMark(words, mark.span, mark.start)
            marks[mark.where] = (*marks.get(mark.where, ()), placed)
    everywhere = spans | sentences | excerpts.keys()
    if len(everywhere) <= _FEW:
        return _Search(spans, sentences, excerpts, marks, tuple(everywhere), {})
    loose: list[_PreparedWords] = []
    by_word: dict[str, tuple[_PreparedWords, ...]] = {}
    for one in everywhere:
        told = [] if is_unspaced(one.plain) else _WORD.findall(one.plain)
        if told:
            key = max(told, key=len)
            by_word[key] = (*by_word.get(key, ()), one)
        else:
            loose.append(one)
    return _Search(spans, sentences, excerpts, marks, tuple(loose), by_word)


def _stretches(text: str, wanted: Iterable[_PreparedWords]) -> Sequence[Span]:
    """Return the spans of a text in which the expressions may occur."""
    if len(text) <= _LONG or any(one.plain != one.folded for one in wanted):
        return [(0, len(text))]
    told: dict[str, int] = {}
    for one in wanted:
        told[one.telling[0]] = max(told.get(one.telling[0], 0), len(one.plain.split()))
    return stretches(text, told)


def _parts_in(text: str, parts: Iterable[str]) -> Sequence[Span]:
    """Return the spans of an excerpt's parts in the text, or the whole text if no part is found, so
    that nothing stays unmasked.
    """
    folded = FoldedText(text)
    found = [
        span for part in parts for span in folded.places(trim_punctuation(FoldedText(part).text))
    ]
    return found or [(0, len(text))]


def _spaced(plain_text: str) -> re.Pattern[str]:
    """Return a pattern of the text's words with any blanks between them."""
    return re.compile(r"\s+".join(map(re.escape, plain_text.split())))


def _rarity(word: str) -> tuple[bool, int]:
    """Return a sort key that estimates how rare a word is: words with digits, then long ones, are
    rarest.
    """
    return any(map(str.isdigit, word)), len(word)


def _words(texts: Collection[str]) -> frozenset[_PreparedWords]:
    return frozenset(words for text in texts if (words := _PreparedWords.of(text)).folded)


def _is_masked(text: str, span: Span) -> bool:
    """Whether the span is only a MASK or the inside of one."""
    return MASK in (text[span[0] : span[1]], text[max(0, span[0] - 1) : span[1] + 1])


def _sentences_around(text: str, found: Iterable[Span]) -> Iterator[Span]:
    """Yield the whole sentences that overlap the found spans."""
    pieces = list(_pieces(text))
    starts = [start for start, _ in pieces]
    guilty: set[int] = set()
    for start, end in found:
        guilty.update(range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)))
    return (_bare(text, *pieces[n]) for n in guilty)


def _pieces(text: str) -> Iterator[Span]:
    ends = (found.end() for found in _END.finditer(text))
    for start, end in pairwise(chain((0,), ends, (len(text),))):
        for piece in _PIECE.finditer(text, start, end):
            yield piece.span()


def _bare(text: str, start: int, end: int) -> Span:
    """Return the span without a bullet and blanks; a MASK alone stays as it is."""
    head = _HEAD.match(text, start, end)
    first = head.end() if head else start
    last = end
    while last > first and (text[last - 1].isspace() or text.endswith(_NEWLINE, first, last)):
        last -= 1 if text[last - 1].isspace() else len(_NEWLINE)
    return first, last


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
