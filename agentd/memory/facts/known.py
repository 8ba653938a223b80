"""The facts in memory, found by id and by what they say."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from operator import attrgetter

from agentd.core.fact import Fact, FactStatus, Triple
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
_age = attrgetter("noted_at", "id")


class Known:
    """All facts by id; those that hold and those that are proposed also by their words."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, Fact] = {}
        self._by_words: dict[str, dict[str, None]] = defaultdict(dict)
        self._all: tuple[Fact, ...] | None = None
        self._active: list[Fact] = []  # by age
        self._first_end: datetime | None = None  # no fact ends before
        for fact in facts:
            self.put(fact)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts.values())

    def __len__(self) -> int:
        return len(self._facts)

    def all(self) -> tuple[Fact, ...]:
        """Every fact; the same tuple as long as none changes."""
        if self._all is None:
            self._all = tuple(self._facts.values())
        return self._all

    def active(self) -> tuple[Fact, ...]:
        """Those that hold, the oldest first."""
        return tuple(self._active)

    def ended(self, now: datetime) -> tuple[Fact, ...]:
        """Those that hold although they have an end which has come."""
        if self._first_end is None or self._first_end > now:
            return ()
        ending = [f for f in self._active if f.valid_to]
        self._first_end = min((f.valid_to for f in ending if f.valid_to), default=None)
        return tuple(f for f in ending if f.valid_to and f.valid_to <= now)

    def get(self, fact_id: str) -> Fact | None:
        """The fact, a forgotten one too."""
        return self._facts.get(fact_id)

    def alive(self, fact_id: str) -> Fact | None:
        """The fact unless it is forgotten."""
        fact = self._facts.get(fact_id)
        return fact if fact is not None and fact.is_alive else None

    def put(self, fact: Fact) -> None:
        """Add it, or replace the one of its id; to put in what is held costs nothing."""
        if self._facts.get(fact.id) is fact:
            return
        self._hide(fact.id)
        self._facts[fact.id] = fact
        self._all = None
        if fact.is_active:
            self._add_active(fact)
        if fact.is_active and fact.valid_to:
            self._first_end = min(fact.valid_to, self._first_end or fact.valid_to)
        if _is_found(fact):
            self._by_words[comparable(fact.text)][fact.id] = None

    def remove(self, fact_id: str) -> None:
        """As if it had never been there."""
        self._hide(fact_id)
        self._facts.pop(fact_id, None)
        self._all = None

    def saying(self, text: str) -> Fact | None:
        """The fact with these very words, one that holds rather than a proposed one."""
        found = [self._facts[i] for i in self._by_words.get(comparable(text), ())]
        return max(found, key=lambda fact: fact.is_active, default=None)

    def current(self, fact_id: str) -> Fact | None:
        """The fact that holds in the place of this one, itself if it still does; None if none does."""
        fact, passed = self.alive(fact_id), {fact_id}
        while fact is not None and fact.status is FactStatus.SUPERSEDED:
            if fact.superseded_by in passed:
                return None
            passed.add(fact.superseded_by)
            fact = self.alive(fact.superseded_by)
        return fact if fact is not None and fact.is_active else None

    def chain(self, fact_id: str) -> tuple[Fact, ...]:
        """The fact with all it replaced and was replaced by, the oldest first."""
        before: dict[str, list[str]] = defaultdict(list)
        for fact in self:
            if fact.superseded_by:
                before[fact.superseded_by].append(fact.id)
        found: dict[str, Fact] = {}
        waiting = [fact_id]
        while waiting:
            one = self._facts.get(waiting.pop())
            if one is not None and one.id not in found:
                found[one.id] = one
                waiting += [*before[one.id], one.superseded_by]
        return tuple(sorted(found.values(), key=lambda fact: (fact.noted_at, fact.id)))

    def _add_active(self, fact: Fact) -> None:
        if not self._active or _age(self._active[-1]) < _age(
            fact
        ):  # nearly always: it is the newest
            self._active.append(fact)
        else:
            insort(self._active, fact, key=_age)

    def _hide(self, fact_id: str) -> None:
        before = self._facts.get(fact_id)
        if before is not None and before.is_active:
            del self._active[bisect_left(self._active, _age(before), key=_age)]
        if before is not None and _is_found(before):
            self._by_words[comparable(before.text)].pop(fact_id, None)


class Digests:
    """Keyed hashes by which something forgotten is known again, without its words."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, text: str) -> bytes:
        """What a sentence is known by."""
        return self._of("text", text)

    def of_taken_back(self, text: str, triple: Triple | None) -> tuple[bytes, ...]:
        """What something is known by that was taken back and not erased: its words, and what it says."""
        fields = (triple.subject, triple.relation, triple.value) if triple else ()
        said = [self._of("said", *fields)] if fields else []
        return (self._of("taken back", text), *said)

    def _of(self, kind: str, *words: str) -> bytes:
        name = "\0".join((kind, *map(comparable, words))).encode(errors="replace")
        return hmac.new(self._key, name, hashlib.sha256).digest()


def comparable(text: str) -> str:
    """The sentence without what says nothing: case, widths, kinds of quotes and dashes, blanks, the
    article of “the user”, punctuation around it. Two with the same form have the same words.
    """
    said = folded(text)
    return (_USER.sub("", said) if "the user" in said else said).strip(_OUTER)


def folded(text: str) -> str:
    """The text with all of its words, without case, widths, kinds of quotes and dashes, and blanks."""
    if text.isascii():  # the same in a tenth of the time
        return " ".join(text.replace("`", "'").lower().split())
    text = unicodedata.normalize("NFKC", text.translate(_SAME)).casefold()
    return " ".join(unicodedata.normalize("NFKC", text).translate(_SAME).split())


def names_in(text: str) -> tuple[str, ...]:
    """The words of a text that name something: with a figure, or with a capital where no sentence begins."""
    words = (one for sentence in sentences(text) for one in enumerate(_WORD.findall(sentence)))
    return tuple(w for at, w in words if any(map(str.isdigit, w)) or (at and w[:1].isupper()))


def _is_found(fact: Fact) -> bool:
    return fact.status in (FactStatus.ACTIVE, FactStatus.PROPOSED)
