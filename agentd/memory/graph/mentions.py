"""Names in what people write: the labels that a text may hold, and those that look like another. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from agentd.core.errors import GraphError
from agentd.core.text import UNSPACED, at_first_use

MAX_WORDS = 100  # of a text that are read
LONGEST = 5  # words of a name
MAX_LETTERS = 60  # of a text in a script without spaces, from which names are looked for
MOST_UNSPACED = 8  # letters of a name in such a script
MOST_LETTERS = 32  # of a name whose misspellings are tried

_UNSPACED = at_first_use(f"[{UNSPACED}\uac00-\ud7af]+")  # in Korean particles stand at the word
_OUTER = ".,;:!?…()[]{}<>\"“”„«»'‘’`*"
_ENDS = tuple(".,;:!?…)]}")  # a name does not go on behind these
_POSSESSIVE = re.compile("['’]s$", re.IGNORECASE)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"


@dataclass(frozen=True, slots=True)
class NamedMention:
    """Letters `start` to `end` of a text (without `end`), and the labels that they may be. `is_owner`:
    they say whose something is.
    """

    start: int
    end: int
    labels: tuple[str, ...]
    is_owner: bool = False


def spans(text: str, resolve: Callable[[str], str]) -> tuple[NamedMention, ...]:
    """Every row of up to five words in the first hundred, with the labels that `resolve` makes of it;
    and, in scripts that put no space between a word and the next, every row of up to eight letters in
    the first sixty. What is no label is left out; so are rows across punctuation.
    """
    parts = [_Word(found) for found in islice(re.finditer(r"\S+", text), MAX_WORDS)]
    found = []
    for start in range(len(parts)):
        for end in range(start + 1, min(start + LONGEST, len(parts)) + 1):
            if labels := _labels(parts[start:end], resolve):
                is_owner = bool(_POSSESSIVE.search(parts[end - 1].bare))
                found.append(NamedMention(parts[start].start, parts[end - 1].end, labels, is_owner))
            if parts[end - 1].is_last:
                break
    return (*found, *_unspaced(text[: parts[-1].end] if parts else "", resolve))


def longest(
    found: Sequence[NamedMention], known: Callable[[str], bool]
) -> Iterator[tuple[str, NamedMention]]:
    """The known labels among spans, from left to right: of spans that overlap, the first that begins,
    and of those that begin together the longest; and before it those that it says it is of ("Klara" in
    "Klara's employer"). Each label once, with its span.
    """
    best: dict[int, list[tuple[NamedMention, tuple[str, ...]]]] = {}
    for span in found:
        if labels := tuple(filter(known, span.labels)):
            best.setdefault(span.start, []).append((span, labels))
    behind, given = 0, set[str]()
    for start, spans in sorted(best.items()):
        if start < behind:
            continue
        behind = max(span.end for span, _ in spans)
        for span, labels in sorted(spans, key=lambda one: one[0].end):
            if span.end == behind or span.is_owner:
                yield from ((label, span) for label in labels if label not in given)
                given.update(labels)


def similar(label: str) -> tuple[str, ...]:
    """Labels that this one may have been meant to be, the likeliest first: with one letter left out,
    added, exchanged or swapped with its neighbour; and parts of it, the longer first.
    """
    likely: dict[str, None] = {}
    if len(label) <= MOST_LETTERS:
        likely.update(dict.fromkeys(_misspelt(label)))
    words = label.split("-")[: 2 * LONGEST]
    for size in range(len(words) - 1, 0, -1):
        for start in range(len(words) - size + 1):
            likely["-".join(words[start : start + size])] = None
    return tuple(name for name in likely if name and name != label)


class _Word:
    """A word as written, and without the punctuation around it."""

    def __init__(self, found: re.Match[str]) -> None:
        self.written = written = found[0]
        self.start, self.end = found.span()
        self.bare = written.strip(_OUTER)
        self.is_last = not self.bare or written.rstrip("\"”“'’*`").endswith(_ENDS)


def _unspaced(text: str, resolve: Callable[[str], str]) -> Iterator[NamedMention]:
    letters = 0
    for run in _UNSPACED().finditer(text):
        for start in range(run.start(), run.end()):
            if letters == MAX_LETTERS:
                return
            letters += 1
            for end in range(start + 1, min(start + MOST_UNSPACED, run.end()) + 1):
                if labels := tuple(dict.fromkeys(_resolved([text[start:end]], resolve))):
                    yield NamedMention(start, end, labels)


def _labels(words: Sequence[_Word], resolve: Callable[[str], str]) -> tuple[str, ...]:
    inner = " ".join(word.bare for word in words)
    if not inner:
        return ()
    written = dict.fromkeys((inner, _POSSESSIVE.sub("", inner)))
    if len(words) == 1:
        written[words[0].written] = None  # ".net"
    return tuple(dict.fromkeys(_resolved(written, resolve)))


def _resolved(written: Iterable[str], resolve: Callable[[str], str]) -> Iterator[str]:
    for name in written:
        try:
            yield resolve(name)
        except GraphError:  # not every row of words is a label
            continue


def _misspelt(label: str) -> Iterator[str]:
    halves = [(label[:at], label[at:]) for at in range(len(label) + 1)]
    yield from (a + b[1] + b[0] + b[2:] for a, b in halves if len(b) > 1)
    yield from (a + b[1:] for a, b in halves if b)
    yield from (a + letter + b for a, b in halves for letter in _LETTERS)
    yield from (a + letter + b[1:] for a, b in halves if b for letter in _LETTERS)
