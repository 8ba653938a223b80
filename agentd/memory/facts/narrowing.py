"""Which of the user's words that prove a fact say it, where they say something else besides. Pure.

A quote may be a whole sentence. Of it those words go that a model marks, if what is left tells nothing of
the fact's value any more; otherwise all of it goes, and what went with it is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from agentd.core.erasure import (
    Erasure,
    Excerpt,
    Mark,
    Sought,
    Written,
    replaced,
    sentences_in,
)
from agentd.core.fact import Besides
from agentd.core.spans import Span, merged, within
from agentd.memory.facts.candidates import Candidate, words_of
from agentd.memory.facts.quotes import is_short

_TELLING = 3  # letters of a word that tells something, in scripts that put blanks between words,
_LONGER = 4  # and of one of a sentence, most of whose words tell nothing by themselves
_ENDING = 3  # letters by which two forms of a word may differ


@dataclass(frozen=True, slots=True)
class _Quote:
    """Words of the evidence, where they stand, and the facts that they prove."""

    text: str
    marks: tuple[Mark, ...]
    facts: tuple[Sought, ...]

    @property
    def says_more(self) -> bool:
        """Whether it has a telling word that none of its facts has."""
        own = [word for one in self.facts for word in words_of(one.text)]
        return any(not _stands_in(word, own) for word in _telling(self.text))

    def tells(self, left: str) -> bool:
        """Whether what is left of it still has a word of the value of a fact; of its sentence, where no
        value is known.
        """
        words = list(words_of(left))
        return any(_stands_in(value, words) for value in self.values)

    @property
    def values(self) -> list[str]:
        """Those words."""
        return _values(self.facts)


def passages(erasure: Erasure) -> tuple[Candidate, ...]:
    """The quotes that say something besides, for the request that marks what says the facts."""
    return tuple(
        Candidate(
            one.text,
            tuple(dict.fromkeys(mark.where for mark in one.marks)),
            frozenset(fact.id for fact in one.facts),
        )
        for one in _quotes(erasure)
    )


def narrowed(
    erasure: Erasure, marks: Collection[Mark] | None
) -> tuple[Erasure, tuple[Besides, ...]]:
    """What is to be erased when of quotes nothing goes but what is marked, and what goes besides. `marks`
    is None where nobody could be asked.
    """
    parts: dict[str, tuple[Span, ...]] = {}
    besides: list[Besides] = []
    for quote in _quotes(erasure):
        said = _marked(quote, marks or ())
        left = " ".join(_between(quote.text, said))
        if not said:
            besides += (Besides(mark.where, "") for mark in quote.marks)
        elif quote.tells(left):
            besides += (Besides(mark.where, _without_values(quote, said)) for mark in quote.marks)
        elif any(map(str.isalnum, left)):
            parts[quote.text] = said
    return _within(erasure, parts), tuple(dict.fromkeys(besides))


def still_asking(asking: Iterable[Written], erasure: Erasure) -> Iterator[Mark]:
    """The sentences of requests to forget that still have a word of a fact's value when all is masked."""
    values = _values(erasure.sought)
    for written in asking:
        gone = erasure.found(written.text, written.where, begins=0)
        for start, end in sentences_in(written.text):
            left = replaced(written.text[start:end], within(gone, start, end))
            words = list(words_of(left))
            if any(_stands_in(value, words) for value in values):
                yield Mark(written.where, written.text[start:end])


def _quotes(erasure: Erasure) -> Iterator[_Quote]:
    """The quotes that have telling words beside those of their facts."""
    by_text: dict[str, list[Mark]] = {}
    for mark in erasure.marks:
        if mark.start is not None:
            by_text.setdefault(mark.span, []).append(mark)
    for text, marks in by_text.items():
        facts = tuple(one for one in erasure.sought if text in one.quotes)
        quote = _Quote(text, tuple(marks), facts)
        if facts and quote.says_more:
            yield quote


def _marked(quote: _Quote, marks: Iterable[Mark]) -> tuple[Span, ...]:
    places = {mark.where for mark in quote.marks}
    spans = tuple(mark.span for mark in marks if mark.where in places)
    return Erasure(spans=spans).found(quote.text)


def _between(text: str, spans: Iterable[Span]) -> Iterator[str]:
    done = 0
    for start, end in spans:
        yield text[done:start]
        done = end
    yield text[done:]


def _without_values(quote: _Quote, said: Iterable[Span]) -> str:
    """The words of a quote with what says the facts masked, and whatever has a word of their values."""
    naming = (
        word
        for word in quote.text.split()
        if any(_stands_in(value, list(words_of(word))) for value in quote.values)
    )
    named = Erasure(spans=tuple(naming)).found(quote.text)
    return replaced(quote.text, merged((*said, *named)))


def _within(erasure: Erasure, parts: Mapping[str, tuple[Span, ...]]) -> Erasure:
    """The same with parts of quotes instead of the quotes."""
    if not parts:
        return erasure
    words = {text: tuple(text[a:b] for a, b in spans) for text, spans in parts.items()}
    marks: list[Mark] = []
    for mark in erasure.marks:
        if mark.start is None or mark.span not in parts:
            marks.append(mark)
        else:
            marks += (Mark(mark.where, mark.span[a:b], mark.start + a) for a, b in parts[mark.span])
    said = [text for text in erasure.spans if text in words and not is_short(text)]
    return replace(
        erasure,
        spans=tuple(text for text in erasure.spans if text not in words),
        marks=tuple(dict.fromkeys(marks)),
        sought=tuple(_with_parts(one, words) for one in erasure.sought),
        excerpts=(*erasure.excerpts, *(Excerpt(text, words[text]) for text in said)),
    )


def _with_parts(one: Sought, words: Mapping[str, tuple[str, ...]]) -> Sought:
    quotes = [part for quote in one.quotes for part in words.get(quote, (quote,))]
    return replace(one, quotes=tuple(dict.fromkeys(quotes)))


def _values(facts: Iterable[Sought]) -> list[str]:
    """Words of the values of facts; of their sentences, where no value is known."""
    found: list[str] = []
    for one in facts:
        found += _telling(one.value) if one.value else _telling(one.text, _LONGER)
    return found


def _telling(text: str, least: int = _TELLING) -> list[str]:
    """The words of a text that tell something: short ones only where there are no others."""
    words = words_of(text)
    telling = [w for w in words if len(w) >= least or not w.isascii() or w.isdecimal()]
    return telling or list(words)


def _stands_in(word: str, others: Iterable[str]) -> bool:
    """Whether a word is one of the others, in whatever ending."""
    return any(
        word == other
        or (
            min(len(word), len(other)) >= _TELLING
            and abs(len(word) - len(other)) <= _ENDING
            and (word.startswith(other) or other.startswith(word))
        )
        for other in others
    )
