"""The facts in memory, by id and by words; and the keyed hashes of forgotten ones."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Self

from agentd.core.fact import Fact, FactOperation, FactStatus, Triple
from agentd.core.text import sentences

_SAME = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʼ＇", "'"),
        **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"),
    }
)
_OUTER = " \t\"'.!?…。！？,;:"
_WORD = re.compile(r"\w+")
_USER = re.compile(r"(?<![\w'-])the (?=user(?![\w-]))")
_FOUND = (FactStatus.ACTIVE, FactStatus.PROPOSED)
_age = attrgetter("noted_at", "id")


class FactLookup(ABC):
    """Look-ups of facts by id and by words."""

    @abstractmethod
    def get(self, fact_id: str) -> Fact | None:
        """Return the fact, also a forgotten one; None if unknown."""

    @abstractmethod
    def worded(self, text: str) -> tuple[Fact, ...]:
        """Return the facts with exactly these words (compared as `comparable`), whether or not they
        hold; no forgotten ones.
        """

    def alive(self, fact_id: str) -> Fact | None:
        """Return the fact unless it is forgotten or unknown."""
        fact = self.get(fact_id)
        return fact if fact is not None and fact.is_alive else None

    def saying(self, text: str) -> Fact | None:
        """Return the active fact with these words, else the proposed one."""
        found = [fact for fact in self.worded(text) if fact.status in _FOUND]
        return max(found, key=lambda fact: fact.is_active, default=None)

    def current(self, fact_id: str) -> Fact | None:
        """Return the active fact that has replaced this one, or the fact itself if active; None if
        there is none.
        """
        fact, passed = self.alive(fact_id), {fact_id}
        while fact is not None and fact.status is FactStatus.SUPERSEDED:
            if fact.superseded_by in passed:
                return None
            passed.add(fact.superseded_by)
            fact = self.alive(fact.superseded_by)
        return fact if fact is not None and fact.is_active else None


@dataclass(frozen=True, eq=False)
class Known(FactLookup):
    """All facts, and which of their lines are missing on the page. Immutable: `after` returns the
    next state, which for ten thousand facts copies three tables of references in less than a
    millisecond.
    """

    _tables: _Tables = field(default_factory=lambda: _Tables())
    parked: tuple[str, ...] = ()  # ids, in the order in which their lines disappeared

    @classmethod
    def of(cls, facts: Iterable[Fact], parked: tuple[str, ...] = ()) -> Self:
        """Build the state of these facts."""
        tables = _Tables()
        for fact in facts:
            tables.put(fact)
        return cls(tables, parked)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._tables.facts.values())

    def __len__(self) -> int:
        return len(self._tables.facts)

    @cached_property
    def all(self) -> tuple[Fact, ...]:
        """Every fact."""
        return tuple(self._tables.facts.values())

    @cached_property
    def active(self) -> tuple[Fact, ...]:
        """The active facts, oldest first."""
        return tuple(self._tables.active)

    def ended(self, now: datetime) -> tuple[Fact, ...]:
        """Return the active facts whose end has passed."""
        first = self._tables.first_end
        if first is None or first > now:
            return ()
        return tuple(fact for fact in self._tables.active if fact.valid_to and fact.valid_to <= now)

    def parked_facts(self) -> tuple[Fact, ...]:
        """Return the facts whose lines are gone from the page without being forgotten."""
        return tuple(fact for i in self.parked if (fact := self.alive(i)) is not None)

    def get(self, fact_id: str) -> Fact | None:
        """See FactLookup."""
        return self._tables.facts.get(fact_id)

    def worded(self, text: str) -> tuple[Fact, ...]:
        """See FactLookup."""
        return tuple(self._tables.facts[i] for i in self._tables.by_words.get(comparable(text), ()))

    def chain(self, fact_id: str) -> tuple[Fact, ...]:
        """Return the fact with all that it replaced and all that replaced it, oldest first."""
        before: dict[str, list[str]] = defaultdict(list)
        for fact in self:
            if fact.superseded_by:
                before[fact.superseded_by].append(fact.id)
        found: dict[str, Fact] = {}
        waiting = [fact_id]
        while waiting:
            one = self._tables.facts.get(waiting.pop())
            if one is not None and one.id not in found:
                found[one.id] = one
                waiting += [*before[one.id], one.superseded_by]
        return tuple(sorted(found.values(), key=_age))

    def after(
        self,
        changed: Sequence[Fact] = (),
        removed: Sequence[str] = (),
        parked: tuple[str, ...] | None = None,
    ) -> Known:
        """Return the next state: `changed` facts are added or replace those of the same id,
        `removed` ones are deleted as if they had never existed. A forgotten fact stays forgotten.
        `parked` are the missing facts then; None: unchanged.
        """
        tables = self._tables.copy()
        for fact in changed:
            if (held := tables.facts.get(fact.id)) is None or held.is_alive:
                tables.put(fact)
        for fact_id in removed:
            tables.remove(fact_id)
        return Known(tables, self.parked if parked is None else parked)


class _Tables:
    """The tables of a Known: filled before the Known is made, and never changed afterwards."""

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.by_words: dict[str, tuple[str, ...]] = {}  # ids
        self.active: list[Fact] = []  # by age
        self.first_end: datetime | None = None  # earliest end of an active fact

    def copy(self) -> Self:
        """Return a copy that can be changed."""
        tables = copy(self)
        tables.facts, tables.by_words = self.facts.copy(), self.by_words.copy()
        tables.active = self.active.copy()
        return tables

    def put(self, fact: Fact) -> None:
        """Add the fact, or replace the one with its id."""
        if fact.id in self.facts:
            self._leave(fact.id)
        self.facts[fact.id] = fact
        if fact.is_alive:
            words = comparable(fact.text)
            self.by_words[words] = (*self.by_words.get(words, ()), fact.id)
        if fact.is_active:
            self._add_active(fact)

    def remove(self, fact_id: str) -> None:
        """Delete the fact as if it had never existed."""
        if fact_id in self.facts:
            self._leave(fact_id)
            del self.facts[fact_id]

    def _add_active(self, fact: Fact) -> None:
        if self.active and _age(fact) < _age(self.active[-1]):
            insort(self.active, fact, key=_age)
        else:  # the usual case: it is the newest
            self.active.append(fact)
        if fact.valid_to:
            self.first_end = min(fact.valid_to, self.first_end or fact.valid_to)

    def _leave(self, fact_id: str) -> None:
        """Remove the fact from all tables except that of ids."""
        fact = self.facts[fact_id]
        words = comparable(fact.text)
        if others := tuple(i for i in self.by_words.get(words, ()) if i != fact_id):
            self.by_words[words] = others
        else:
            self.by_words.pop(words, None)
        if fact.is_active:
            del self.active[bisect_left(self.active, _age(fact), key=_age)]
        if fact.is_active and fact.valid_to:
            ends = (one.valid_to for one in self.active if one.valid_to)
            self.first_end = min(ends, default=None)


class Digests:
    """Keyed hashes that recognise something forgotten without storing its words."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, text: str) -> bytes:
        """Return the hash of a sentence."""
        return self._of("text", text)

    def of_taken_back(self, text: str, triple: Triple | None) -> tuple[bytes, ...]:
        """Return the hashes of something undone but not erased: of its words, and of its triple."""
        fields = (triple.subject, triple.relation, triple.value) if triple else ()
        said = [self._of("said", *fields)] if fields else []
        return (self._of("taken back", text), *said)

    def _of(self, kind: str, *words: str) -> bytes:
        name = "\0".join((kind, *map(comparable, words))).encode(errors="replace")
        return hmac.new(self._key, name, hashlib.sha256).digest()


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The hashes of what was forgotten or taken back, with the times."""

    digests: Digests
    by_digest: Mapping[bytes, datetime] = field(default_factory=dict)

    def is_buried(self, text: str, at: datetime) -> bool:
        """Whether the user had these words erased after they were said."""
        forgotten = self.by_digest.get(self.digests.of(text))
        return forgotten is not None and forgotten >= at

    def is_forgotten(self, operation: FactOperation) -> bool:
        """Whether the user has had the statement erased or taken it back, and has not made it
        since.
        """
        if self._is_taken_back(operation):
            return True
        if operation.is_carried or not operation.is_proven:
            return self.digests.of(operation.text) in self.by_digest
        return self.is_buried(operation.text, operation.at)

    def lifted(self, operation: FactOperation) -> list[bytes]:
        """Return the tombstones to delete because the user makes the statement again."""
        taken_back = self.digests.of_taken_back(operation.text, operation.triple)
        return [d for d in (self.digests.of(operation.text), *taken_back) if d in self.by_digest]

    def _is_taken_back(self, operation: FactOperation) -> bool:
        """Whether the user undid the result of these words after saying them."""
        if operation.is_carried:
            return False
        names = self.digests.of_taken_back(operation.text, operation.triple)
        found = (self.by_digest.get(name) for name in names)
        return any(at is not None and at >= operation.at for at in found)


def comparable(text: str) -> str:
    """Return the normal form of a sentence for comparison: no case, width, kind of quotes and
    dashes, article of “the user”, or outer punctuation. Sentences with equal forms have the same
    words.
    """
    said = fold_text(text)
    return (_USER.sub("", said) if "the user" in said else said).strip(_OUTER)


def fold_text(text: str) -> str:
    """Return the text without differences of case, width, quotes, dashes and blanks."""
    if text.isascii():  # same result in a tenth of the time
        return " ".join(text.replace("`", "'").lower().split())
    text = unicodedata.normalize("NFKC", text.translate(_SAME)).casefold()
    return " ".join(unicodedata.normalize("NFKC", text).translate(_SAME).split())


def names_in(text: str) -> tuple[str, ...]:
    """Return the words that name something: with a digit, or capitalised where no sentence
    begins.
    """
    words = (one for sentence in sentences(text) for one in enumerate(_WORD.findall(sentence)))
    return tuple(w for at, w in words if any(map(str.isdigit, w)) or (at and w[:1].isupper()))
