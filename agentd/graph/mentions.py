"""Names in what people write: the labels that a text may hold, and those that look like another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from agentd.errors import GraphError
from agentd.statements.telling import is_same_word, telling_words

MAX_WORDS = 100  # of a text that are read
LONGEST = 5  # words of a name
MAX_LETTERS = 60  # of a text in a script without spaces, from which names are looked for
MOST_UNSPACED = 8  # letters of a name in such a script
MOST_LETTERS = 32  # of a name whose misspellings are tried

_LEAST = 3  # letters of a word that says a predicate
_READ = 2_000  # characters of a text whose words are looked for in predicates

# Thai, Lao, Burmese, Khmer, Kana, Han; and Hangul, where particles stand at the word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
_OUTER = ".,;:!?…()[]{}<>\"“”„«»'‘’`*"
_ENDS = tuple(".,;:!?…)]}")  # a name does not go on behind these
_POSSESSIVE = re.compile("['’]s$", re.IGNORECASE)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"


@dataclass(frozen=True, slots=True)
class Span:
    """Letters `start` to `end` of a text (without `end`), and the labels that they may be."""

    start: int
    end: int
    labels: tuple[str, ...]


def spans(text: str, resolve: Callable[[str], str]) -> tuple[Span, ...]:
    """Every row of up to five words in the first hundred, with the labels that `resolve` makes of it;
    and, in scripts that put no space between a word and the next, every row of up to eight letters in
    the first sixty. What is no label is left out; so are rows across punctuation.
    """
    parts = [_Word(found) for found in islice(re.finditer(r"\S+", text), MAX_WORDS)]
    found = []
    for start in range(len(parts)):
        for end in range(start + 1, min(start + LONGEST, len(parts)) + 1):
            if labels := _labels(parts[start:end], resolve):
                found.append(Span(parts[start].start, parts[end - 1].end, labels))
            if parts[end - 1].is_last:
                break
    return (*found, *_unspaced(text[: parts[-1].end] if parts else "", resolve))


def longest(found: Sequence[Span], known: Callable[[str], bool]) -> Iterator[str]:
    """The known labels among spans, from left to right: of spans that overlap, the first that begins,
    and of those that begin together the longest. Each label once.
    """
    best: dict[int, tuple[int, tuple[str, ...]]] = {}
    for span in found:
        labels = tuple(filter(known, span.labels))
        if labels and span.end > best.get(span.start, (0, ()))[0]:
            best[span.start] = (span.end, labels)
    behind, given = 0, set[str]()
    for start, (end, labels) in sorted(best.items()):
        if start >= behind:
            behind = end
            yield from (label for label in labels if label not in given)
            given.update(labels)


def echoes(text: str) -> Callable[[str], bool]:
    """Whether a text says a predicate: a word of it, in whatever form (agentd/statements/telling.py).
    “Where does she work” says `works_at`, “does she own a boat” says `owns`. Words that any sentence may
    have count only where the predicate has no others, and then its longest.
    """
    said = {w for w in re.findall(r"\w+", text.casefold()[:_READ]) if len(w) >= _LEAST}
    forms = {form for word in said for form in _forms(word)}
    return lambda predicate: any(
        forms & _forms(word) or any(is_same_word(word, other) for other in said)
        for word in _telling(predicate)
    )


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


def _forms(word: str) -> set[str]:
    """What a short word may be a form of: “uses”, “used” and “using” are “use”."""
    cut = {word.removesuffix(ending) for ending in ("s", "d", "es", "ed", "ing")}
    with_e = {f"{stem}e" for stem in (word.removesuffix("ing"),) if stem != word}
    return {form for form in cut | with_e if len(form) >= _LEAST}


def _telling(predicate: str) -> tuple[str, ...]:
    words = predicate.casefold().split("_")
    if telling := telling_words(" ".join(words)):
        return telling
    longest_word = max(words, key=len)
    return (longest_word,) if len(longest_word) >= _LEAST else ()


def _unspaced(text: str, resolve: Callable[[str], str]) -> Iterator[Span]:
    letters = 0
    for run in _UNSPACED.finditer(text):
        for start in range(run.start(), run.end()):
            if letters == MAX_LETTERS:
                return
            letters += 1
            for end in range(start + 1, min(start + MOST_UNSPACED, run.end()) + 1):
                if labels := tuple(dict.fromkeys(_resolved([text[start:end]], resolve))):
                    yield Span(start, end, labels)


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
