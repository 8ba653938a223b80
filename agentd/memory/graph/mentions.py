"""Finds the labels that a text may contain, and labels similar to another. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from agentd.core.errors import GraphError
from agentd.core.text import UNSPACED, at_first_use

MAX_WORDS = 100  # words of a text that are read
LONGEST = 5  # most words of a name
MAX_LETTERS = 60  # characters read of a text in a script without spaces
MOST_UNSPACED = 8  # most characters of a name in such a script
MOST_LETTERS = 32  # longest name whose misspellings are tried

_UNSPACED = at_first_use(f"[{UNSPACED}\uac00-\ud7af]+")  # Korean appends particles to words
_OUTER = ".,;:!?…()[]{}<>\"“”„«»'‘’`*"
_ENDS = tuple(".,;:!?…)]}")  # no name continues after these
_POSSESSIVE = re.compile("['’]s$", re.IGNORECASE)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"


class NamedMention(Struct, frozen=True):
    """The characters `start` to `end` (excluded) of a text, and the labels they may stand for.
    `is_owner`: they are a possessive.
    """

    start: int
    end: int
    labels: tuple[str, ...]
    is_owner: bool = False


def spans(text: str, resolve: Callable[[str], str]) -> tuple[NamedMention, ...]:
    """Return every sequence of up to five words among the first hundred, with the labels that
    `resolve` makes of it; in scripts without spaces, every sequence of up to eight characters among
    the first sixty. Sequences that are no label, or cross punctuation, are left out.
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
    return (*found, *_unspaced_mentions(text[: parts[-1].end] if parts else "", resolve))


def longest(
    found: Sequence[NamedMention], known: Callable[[str], bool]
) -> Iterator[tuple[str, NamedMention]]:
    """Yield the known labels among the spans, from left to right, each once with its span. Of
    overlapping spans the first counts, and of those with the same start the longest, preceded by
    its possessive ("Klara" in "Klara's employer").
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
    """Return labels that may have been meant, the most likely first: with one letter missing,
    added, exchanged or swapped with the next; then parts of the label, longer ones first.
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
    """A word as written, and without outer punctuation."""

    def __init__(self, found: re.Match[str]) -> None:
        self.written = written = found[0]
        self.start, self.end = found.span()
        self.bare = written.strip(_OUTER)
        self.is_last = not self.bare or written.rstrip("\"”“'’*`").endswith(_ENDS)


def _unspaced_mentions(text: str, resolve: Callable[[str], str]) -> Iterator[NamedMention]:
    letters = 0
    for run in _UNSPACED().finditer(text):
        for start in range(run.start(), run.end()):
            if letters == MAX_LETTERS:
                return
            letters += 1
            for end in range(start + 1, min(start + MOST_UNSPACED, run.end()) + 1):
                if labels := tuple(dict.fromkeys(_resolve_names([text[start:end]], resolve))):
                    yield NamedMention(start, end, labels)


def _labels(words: Sequence[_Word], resolve: Callable[[str], str]) -> tuple[str, ...]:
    inner = " ".join(word.bare for word in words)
    if not inner:
        return ()
    written = dict.fromkeys((inner, _POSSESSIVE.sub("", inner)))
    if len(words) == 1:
        written[words[0].written] = None  # ".net"
    return tuple(dict.fromkeys(_resolve_names(written, resolve)))


def _resolve_names(written: Iterable[str], resolve: Callable[[str], str]) -> Iterator[str]:
    for name in written:
        try:
            yield resolve(name)
        except GraphError:  # not every sequence of words is a label
            continue


def _misspelt(label: str) -> Iterator[str]:
    halves = [(label[:at], label[at:]) for at in range(len(label) + 1)]
    yield from (a + b[1] + b[0] + b[2:] for a, b in halves if len(b) > 1)
    yield from (a + b[1:] for a, b in halves if b)
    yield from (a + letter + b for a, b in halves for letter in _LETTERS)
    yield from (a + letter + b[1:] for a, b in halves if b for letter in _LETTERS)
