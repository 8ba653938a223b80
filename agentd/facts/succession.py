"""Which hits of a search only repeat what is no longer so, and which fact holds in its place. Pure.

A hit repeats a superseded fact if it is a line that the fact was said in, its line on the page, or if
it has the words of the fact's value and what they were said of. One that says the present value as
well tells of the change: it repeats nothing, but the fact answers before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from agentd.domain.erasure import folded
from agentd.domain.fact import Fact, Provenance
from agentd.domain.memory import OWNERS, Chunk, Hit, Source
from agentd.domain.turn import SessionKey
from agentd.domain.workspace import FACTS_PATH
from agentd.facts.known import came_of
from agentd.statements.relations import canonical, slot
from agentd.statements.telling import PERSONS, is_same_word, telling_words

_STEM = 3  # letters that two forms of one word begin with in any case
_LONG = 6  # letters of a word whose forms have one letter more in common
_SPOKEN_BY_USER = "[user]"
_LONGEST = 4_000  # characters of a hit that are looked at


@dataclass(frozen=True, slots=True)
class Current:
    """A fact that holds, and the line of the page on which it stands."""

    fact: Fact
    line: int

    @property
    def place(self) -> str:
        """As `path:line`."""
        return f"{FACTS_PATH}:{self.line}"

    def hit(self, score: float) -> Hit:
        """Its line as a search finds it, for a search that did not."""
        day = self.fact.valid_from.date()
        text, source = self.fact.text, Source.NOTES
        chunk = Chunk(FACTS_PATH, self.line, self.line, text, source, OWNERS, day)
        return Hit(chunk, score, {"current": 1.0})


@dataclass(frozen=True, slots=True)
class Past:
    """A superseded fact: what it is recognised by, and what holds in its place.

    `value` are the words of its value, all of which must be said; of `about`, what they are said of,
    `least`. `news` are the words of the present value that the old one does not have.
    """

    now: Current
    line: int  # its own on the page; 0 if it has none
    rows: frozenset[Provenance]
    value: frozenset[str]
    about: frozenset[str]
    least: int
    news: frozenset[str]
    topic: _Said  # all words of both facts


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a hit says that is no longer so; `is_told_of` if it says what came in its place, too."""

    past: Past
    is_told_of: bool


class Succession:
    """Built once for each state of the facts. `text` is the page, `rows` are further lines of
    transcripts that facts were said in, by id.
    """

    def __init__(
        self,
        facts: Iterable[Fact],
        text: str,
        rows: Mapping[str, Iterable[Provenance]] | None = None,
    ) -> None:
        known = {fact.id: fact for fact in facts}
        instead = _instead(known.values())
        lines = _Lines(text)
        self._by_key: dict[str, list[Past]] = defaultdict(list)
        self._by_row: dict[Provenance, list[Past]] = defaultdict(list)
        self._by_line: dict[int, Past] = {}
        for fact in known.values():
            current = came_of(fact, known)
            current = instead.get(current.id, current) if current is not None else None
            if current is None or not (line := lines.of(current.id)):
                continue
            said_in = [fact.origin, *(rows or {}).get(fact.id, ())]
            self._add(_past(fact, Current(current, line), lines.of(fact.id), said_in))

    def __bool__(self) -> bool:
        """Whether anything is no longer so."""
        return bool(self._by_row or self._by_key or self._by_line)

    def arranged(
        self, hits: Sequence[Hit], query: str, read: Mapping[str, int], *, adds: bool = True
    ) -> tuple[Hit, ...]:
        """The hits with what repeats the past marked, and behind the fact that holds now, which is
        put there if it was not found and `adds` says so. `read` gives by path the last line of each
        transcript that facts were read from.
        """
        asked = frozenset(telling_words(query))
        olds = [self._repeated(hit, asked, read) for hit in hits]
        order = [
            replace(hit, superseded_by=old.past.now.place) if old and not old.is_told_of else hit
            for hit, old in zip(hits, olds, strict=True)
        ]
        firsts: dict[int, tuple[Current, Hit]] = {}
        for hit, old in zip(order, olds, strict=True):
            if old is not None:
                firsts.setdefault(old.past.now.line, (old.past.now, hit))
        for now, first in firsts.values():
            _put_first(now, first, order, adds=adds)
        return tuple(order)

    def _add(self, past: Past) -> None:
        if past.line:
            self._by_line[past.line] = past
        for row in past.rows:
            self._by_row[row].append(past)
        if past.value:
            self._by_key[_key(max(past.value, key=len))].append(past)

    def _repeated(
        self, hit: Hit, asked: frozenset[str], read: Mapping[str, int]
    ) -> Repeated | None:
        """What the hit says that is no longer so, as far as it has to do with the question."""
        said = _Said(hit.chunk.text[:_LONGEST])
        touched = frozenset(word for word in asked if said.has(word))
        found = [past for past in self._said(hit, said, read) if _is_meant(touched, past)]
        past = max(found, key=lambda past: _shared(touched, past), default=None)
        return Repeated(past, is_told_of=said.has_all(past.news)) if past else None

    def _said(self, hit: Hit, said: _Said, read: Mapping[str, int]) -> Iterator[Past]:
        if hit.chunk.path == FACTS_PATH:
            lines = _lines_of_page(hit)
            olds = (self._by_line[line] for line in lines if line in self._by_line)
            yield from (past for past in olds if past.now.line not in lines)
            return
        for row in _rows(hit):
            yield from self._by_row.get(row, ())
        for key in said.keys & self._by_key.keys():
            for past in self._by_key[key]:
                if _says(said, past) and not _is_news(hit, past.now.fact, read):
                    yield past


class _Said:
    """The words of a text, and forms of them."""

    def __init__(self, text: str) -> None:
        self._words = _words(text)
        self._alike: dict[str, list[str]] = defaultdict(list)
        for word in self._words:
            self._alike[word[:_STEM]].append(word)
        longer = {word[: _STEM + 1] for word in self._words}
        self.keys = self._words | self._alike.keys() | longer

    def has(self, word: str) -> bool:
        """Whether the word is among them, in any form."""
        alike = self._alike.get(word[:_STEM], ())
        return word in self._words or any(is_same_word(word, other) for other in alike)

    def has_all(self, words: frozenset[str]) -> bool:
        """Whether there are words and all are among them."""
        return bool(words) and all(map(self.has, words))


class _Lines:
    """Where facts stand on the page."""

    def __init__(self, text: str) -> None:
        self._by_id: dict[str, int] = {}
        for number, line in enumerate(text.split("\n"), 1):
            _, mark, rest = line.partition("<!-- fact id=")
            if mark:
                self._by_id.setdefault(rest.split(maxsplit=1)[0] if rest.strip() else "", number)

    def of(self, fact_id: str) -> int:
        """The line's number, 0 if there is none."""
        return self._by_id.get(fact_id, 0)


def _instead(facts: Iterable[Fact]) -> dict[str, Fact]:
    """By the ids of facts that something no longer holds, what was said in the same breath to hold
    instead: “I switched from A to B” makes a fact of either.
    """
    denials: list[Fact] = []
    holding: dict[tuple[Provenance, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.triple is None or not fact.is_active or not fact.origin.seq:
            continue
        if canonical(fact.triple.relation)[1]:
            denials.append(fact)
        else:
            holding[fact.origin, slot(fact.triple)].append(fact)
    found = {}
    for fact in denials:
        others = holding[fact.origin, slot(fact.triple)] if fact.triple is not None else []
        if len(others) == 1:
            found[fact.id] = others[0]
    return found


def _past(fact: Fact, now: Current, line: int, said_in: Iterable[Provenance]) -> Past:
    old, new = _value(fact, now.fact), _value(now.fact, fact)
    news = new - old
    if not news and not old - _words(now.fact.text):
        old = frozenset()  # the same value, denied: it is known again only where it was said
    telling = frozenset(_words(" ".join(telling_words(fact.text)))) - old - {"user"}
    named = frozenset[str]()
    if fact.triple is not None:
        named = _words(f"{fact.triple.subject} {fact.triple.relation}") - old - {"user"}
    about = telling | named or frozenset(PERSONS)
    if not telling:
        about |= frozenset(PERSONS)
    topic = _Said(" ".join((fact.text, now.fact.text, *named)))
    rows = frozenset(row for row in said_in if row.session)
    return Past(now, line, rows, old, about, max(1, (len(telling) + 1) // 2), news, topic)


def _value(fact: Fact, other: Fact) -> frozenset[str]:
    """The words of its value, or what it says and the other does not."""
    if fact.triple is not None:
        value = fact.triple.value
        return _words(" ".join(telling_words(value))) or _words(value)
    there = telling_words(other.text)
    own = [w for w in telling_words(fact.text) if not any(is_same_word(w, o) for o in there)]
    return _words(" ".join(own))


def _words(text: str) -> frozenset[str]:
    return frozenset(folded(text).split())


def _key(word: str) -> str:
    """What all forms of the word begin with; one with a digit has no other form."""
    if any(map(str.isdigit, word)):
        return word
    return word[: _STEM + (len(word) >= _LONG)]


def _says(said: _Said, past: Past) -> bool:
    return said.has_all(past.value) and sum(map(said.has, past.about)) >= past.least


def _is_meant(touched: frozenset[str], past: Past) -> bool:
    """Whether the words of the question that a hit has are rather about this than about what else it
    may say.
    """
    return 2 * _shared(touched, past) >= len(touched)


def _shared(touched: frozenset[str], past: Past) -> int:
    return sum(past.topic.has(word) for word in touched)


def _is_news(hit: Hit, now: Fact, read: Mapping[str, int]) -> bool:
    """Whether the user said it after the fact that holds, and nobody has drawn a fact from it yet."""
    chunk = hit.chunk
    if chunk.source is not Source.SESSIONS or chunk.end_line <= read.get(chunk.path, 0):
        return False
    if not chunk.text.startswith(_SPOKEN_BY_USER) or "?" in chunk.text:
        return False
    if chunk.path == f"sessions/{now.origin.session}.jsonl":
        return chunk.start_line > now.origin.seq
    return (chunk.date or date.min) > now.valid_from.date()


def _rows(hit: Hit) -> Iterator[Provenance]:
    chunk = hit.chunk
    if chunk.source is Source.SESSIONS:
        session = chunk.path.removeprefix("sessions/").removesuffix(".jsonl")
        for seq in range(chunk.start_line, chunk.end_line + 1):
            yield Provenance(SessionKey(session), seq)


def _lines_of_page(hit: Hit) -> range:
    chunk = hit.chunk
    return range(chunk.start_line, chunk.end_line + 1) if chunk.path == FACTS_PATH else range(0)


def _put_first(now: Current, before: Hit, order: list[Hit], *, adds: bool) -> None:
    """Let the fact stand before this hit."""
    first = next(n for n, hit in enumerate(order) if hit.chunk is before.chunk)
    there = next((n for n, hit in enumerate(order) if now.line in _lines_of_page(hit)), None)
    if there is not None:
        found = replace(order.pop(there), superseded_by="")
        if there > first:
            there, found = first, replace(found, score=max(found.score, before.score))
        order.insert(there, found)
    elif adds:
        order.insert(first, now.hit(before.score))
