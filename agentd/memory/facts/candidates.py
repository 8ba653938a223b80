"""Which texts may say a forgotten fact in other words, and which of the user's mention the same. Pure.

A text is looked at because it shares a word with the fact that is rare in all that is kept. What is rare
is counted; words are compared by how they begin, in scripts without blanks by pairs of letters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate, chain
from math import log

from agentd.core.erasure import MASK, Erasure, Mark, Sought, Written, replaced, sentences_in
from agentd.core.fact import Mention
from agentd.core.spans import Span, within
from agentd.core.text import UNSPACED, at_first_use, is_unspaced, plain
from agentd.memory.facts.known import names_in

Near = tuple[str, int, int]  # path, first and last line

_WORD = at_first_use(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")
_UNSPACED = at_first_use(f"[{UNSPACED}]")
_STEM = 6  # letters of a word that count
_KEPT = 300  # texts that are kept of one word, the newest
_SHARE = 50  # a word is rare if at most every 50th text has it,
_FEW_ASKED, _FEW_TOLD = 12, 4  # or so few, for the model's eyes and for the user's
_EVERYWHERE = 2_000  # texts that have a word which is looked for no longer,
_SHARE_OF_ALL = 25  # or, if that is more, so great a share of all texts as are expected
_MOST_ASKED = 200  # candidates of one fact
_MOST_TOLD = 50  # mentions
_MOST_NAMING = 1_000  # texts of the user's with a name, the last that were seen, that are looked at
_NUMBER = 3  # figures of a number that tells however often it stands
_LINES = 20  # of a paragraph that a hit may lie in
_BLANKS = bytes(ord(chr(n).lower()) if chr(n).isalnum() else 32 for n in range(128)) + bytes(128)
_TALK, _TYPED = "sessions/", "chat_history:"
_BEFORE, _CLOSE = timedelta(minutes=10), timedelta(seconds=1)  # from typing to storing
_VERSION = re.compile(r"@\d+:\d+$")


@dataclass(frozen=True, slots=True)
class Also:
    """A mention that stays unless the user names it, and the marks that it is erased by then."""

    mention: Mention
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may say one of these facts, by their ids, and all the places that have this very text.
    `words` are those by which it was found, none if it was found otherwise.
    """

    text: str
    where: tuple[str, ...]
    facts: frozenset[str]
    words: frozenset[str] = frozenset()


class Words:
    """Words as they are counted, looked for in many texts."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self.wanted = wanted
        self._needles = {
            f" {word} ".encode() if len(word) < _STEM else f" {word}".encode(): word
            for word in wanted
            if word.isascii()
        }

    def found(self, text: str) -> frozenset[str]:
        """Those that `words_of` the text has."""
        if not _is_usual(text):
            return self.wanted & words_of(text)
        bare = _bare(text)
        return frozenset(word for needle, word in self._needles.items() if needle in bare)

    def stand_in(self, text: str) -> bool:
        """Whether the text has any of them, or what it is the JSON of."""
        if not _is_usual(text):
            return not self.wanted.isdisjoint(words_of(text))
        return any(map(_bare(text).__contains__, self._needles))

    def among(self, texts: Sequence[str]) -> list[int]:
        """The numbers of those of the texts, from 0 on, of which `stand_in` is true. Nearly all need no
        folding, and are looked through as one.
        """
        usual = [n for n, text in enumerate(texts) if _is_usual(text)]
        found = {n for n in set(range(len(texts))).difference(usual) if self.stand_in(texts[n])}
        begins = list(accumulate((len(texts[n]) + 1 for n in usual), initial=1))
        bare = _bare("\n".join(texts[n] for n in usual))
        for needle in self._needles:
            at = bare.find(needle)
            while at >= 0:  # at the blank before the word
                place = bisect_right(begins, at + 1) - 1
                found.add(usual[place])
                at = bare.find(needle, begins[place + 1] - 1)
        return sorted(found)


@dataclass(slots=True)
class Survey:
    """What is found by looking through all texts once. `near` are lines that are near a fact in meaning,
    by its id; `quoted` whole rows of which a part is marked, by their text. `twins` are the same marks
    in copies of these rows: in forks of a session, and in what was typed. `asking` are the user's words that
    name a fact to have it forgotten, by their places.

    A word that stands in very many texts tells nothing. As soon as that is known it is looked for no
    longer, so that these texts need not be read; `is_sure` says afterwards whether that could be.
    """

    sought: Sequence[Sought]
    near: Mapping[str, Collection[Near]] = field(default_factory=dict)
    quoted: Mapping[str, Collection[tuple[Mark, datetime]]] = field(default_factory=dict)
    is_thorough: bool = False  # no word is passed over
    twins: list[Mark] = field(default_factory=list)
    asking: dict[str, Written] = field(default_factory=dict)
    more: int = 0  # mentions that `mentions` has not given, at least
    size: int = 0  # texts
    counts: Counter[str] = field(default_factory=Counter)  # in how many texts each word stands
    _by_word: dict[str, deque[Written]] = field(default_factory=dict)
    _besides: dict[str, list[Written]] = field(default_factory=lambda: defaultdict(list))
    _naming: deque[Written] = field(default_factory=lambda: deque(maxlen=_MOST_NAMING))
    _names: frozenset[str] = field(init=False)  # words that tell however often they stand
    _words: Words = field(init=False)
    _common: set[str] = field(default_factory=set)  # words that are looked for no longer
    _expected: int = 0  # texts
    _places: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # to fact ids

    def __post_init__(self) -> None:
        """Know which words count, and what is looked at whatever it says."""
        self._words = Words(frozenset(chain.from_iterable(self._told())))
        self._names = words_of(" ".join(chain.from_iterable(map(_telling_names, self.sought))))
        for one in self.sought:
            for where in one.rows:
                self._places[where].add(one.id)
            for path, first, last in self.near.get(one.id, ()):
                self._places[path].add(one.id)
                for line in range(first - _LINES + 1, last + 1):
                    self._places[f"{path}:{line}"].add(one.id)

    def may_be(self, text: str, where: str) -> bool:
        """See Wanted."""
        return where in self._places or self._words.stand_in(text)

    def among(self, texts: Sequence[str]) -> Sequence[int]:
        """See Wanted."""
        return self._words.among(texts)

    @property
    def places(self) -> Collection[str]:
        """See Wanted."""
        return self._places.keys()

    def looked_for(self) -> Callable[[str], bool]:
        """See Wanted."""
        return self._words.stand_in

    def expect(self, count: int) -> None:
        """See Wanted."""
        self._expected += count

    @property
    def is_sure(self) -> bool:
        """Whether every word that was passed over is too common to count, beside others of what it is said
        by that are not.
        """
        most = max(_FEW_ASKED, self.size // _SHARE)
        return all(self.counts[word] > most for word in self._common) and not any(
            words and words <= self._common for words in self._told()
        )

    def pass_over(self, count: int) -> None:
        """See Wanted."""
        self.size += count

    def add(self, texts: Iterable[Written]) -> None:
        """Look at more texts. Blocks."""
        for written in texts:
            self.size += 1
            shared = self._words.found(written.text)
            self.counts.update(shared)
            for word in shared:
                self._by_word.setdefault(word, deque(maxlen=_KEPT)).append(written)
            if written.by_user and not self._names.isdisjoint(shared):
                self._naming.append(written)
            for mark, at in self.quoted.get(written.text, ()) if written.by_user else ():
                if written.where != mark.where and _is_copy(written, at):
                    self.twins.append(replace(mark, where=written.where))
            if written.by_user:
                self._note_request(written)
            for fact_id in self._places.get(written.where, ()):
                self._besides[fact_id].append(written)
        if not self.is_thorough:
            self._set_aside()

    def candidates(self, erasure: Erasure) -> tuple[Candidate, ...]:
        """Texts of agentd's that may say one of the facts, and what is left, when this is erased, of the user's
        words in conversations that name one; the likeliest of each first.
        """
        by_user = {w.text for w in self._all() if w.by_user}
        found: dict[str, Candidate] = {}
        for one in self.sought:
            rare = self._rare(one)
            for written in self._likeliest(one, rare, erasure):
                text = written.text
                if text in by_user and _VERSION.search(written.where):
                    continue  # what the user's file says as it is now
                known = found.get(text, Candidate(text, (), frozenset()))
                found[text] = Candidate(
                    text,
                    tuple(dict.fromkeys((*known.where, written.where))),
                    known.facts | {one.id},
                    known.words | (rare & words_of(text)),
                )
        return tuple(found.values())

    @property
    def telling(self) -> frozenset[str]:
        """The words, as they are counted, by which a text mentions one of the facts."""
        return frozenset(chain.from_iterable(map(self._telling, self.sought)))

    def believed(self, marks: Sequence[Mark]) -> tuple[Mark, ...]:
        """The marks without those in the user's words that name no fact, or leave nothing of what he has said
        there, unless it is known to say one, or to ask for that: what a model takes for it whole may say
        anything.
        """
        known = {*self.asking, *chain.from_iterable(one.rows for one in self.sought)}
        said = {w.where: w for w in self._all() if w.by_user and w.where not in known}
        telling = self.telling
        told = [m for m in marks if m.where not in said or not telling.isdisjoint(words_of(m.span))]
        whole = {
            where
            for where in said.keys() & {mark.where for mark in told}
            if not _is_left(said[where].text, [m.span for m in told if m.where == where])
        }
        return tuple(mark for mark in told if mark.where not in whole)

    def mentions(self, erasure: Erasure, *, is_done: bool = False) -> tuple[Also, ...]:
        """Sentences of the user's that stay and mention the same, each once, in an order that later texts
        keep. Once it `is_done` those that agentd wrote into files, too. Of very many, those with the rarest
        words; `more` is how many are left out then.
        """
        rare = self.telling
        found: list[tuple[float, Written, Span, str]] = []
        for written in self._all():
            is_told = written.by_user or (is_done and written.is_in_file)
            if not is_told or written.where.startswith(_TYPED):
                continue
            gone = _masked_in(written, erasure)
            for start, end in sentences_in(written.text):
                left = replaced(written.text[start:end], within(gone, start, end))
                if shared := rare & words_of(left):
                    found.append((self._weight(shared), written, (start, end), left))
        found.sort(key=lambda one: (*_order(one[1]), one[2]))
        same: dict[str, list[tuple[float, Written, Span, str]]] = defaultdict(list)
        for one in found:
            same[plain(one[3])].append(one)
        rarest = sorted(same.values(), key=lambda several: -several[0][0])
        self.more = max(0, len(rarest) - _MOST_TOLD)
        kept = sorted(rarest[:_MOST_TOLD], key=lambda s: (*_order(s[0][1]), s[0][2]))
        return tuple(self._also(n, several) for n, several in enumerate(kept, start=1))

    def _also(self, n: int, several: Sequence[tuple[float, Written, Span, str]]) -> Also:
        """One mention of sentences with the same words."""
        places = tuple(dict.fromkeys(written.where for _, written, _, _ in several))
        marks = (self._marks(written, span) for _, written, span, _ in several)
        told = Mention(n, places[0], several[0][3], places[1:])
        return Also(told, tuple(dict.fromkeys(chain.from_iterable(marks))))

    def _marks(self, written: Written, span: Span) -> tuple[Mark, ...]:
        """For one sentence of a text, in what was typed and in what a file was, too."""
        copies = (
            w.where
            for w in self._all()
            if w.text == written.text and (w.where.startswith(_TYPED) or _VERSION.search(w.where))
        )
        said = written.text[slice(*span)]
        return tuple(Mark(where, said) for where in dict.fromkeys((written.where, *copies)))

    def _note_request(self, written: Written) -> None:
        """Keep in mind what asks for a fact to be forgotten: its row, or its copy in what was typed."""
        for one in self.sought:
            if written.where in one.rows:
                self.asking[written.where] = written
            elif (
                one.asked_at is not None
                and written.where.startswith(_TYPED)
                and _is_copy(written, one.asked_at)
                and written.text.strip().endswith(tuple(text.strip() for text in one.asked))
            ):
                self.asking[written.where] = written
                self._places[written.where].add(one.id)

    def _told(self) -> Iterator[frozenset[str]]:
        """The words of each thing that facts are told by: sentences, values, quotes, and names in these."""
        for one in self.sought:
            yield from map(words_of, (one.text, one.value, *one.quotes))
            yield words_of(" ".join(_names(one)))

    def _set_aside(self) -> None:
        """Look for what turned out to be common no longer."""
        most = max(_EVERYWHERE, max(self._expected, self.size) // _SHARE_OF_ALL)
        if common := {word for word in self._words.wanted if self.counts[word] > most}:
            self._common |= common
            self._words = Words(self._words.wanted - common)
            for word in common:
                del self._by_word[word]

    def _all(self) -> Iterator[Written]:
        """Each text that was kept, once."""
        several = (*self._by_word.values(), *self._besides.values(), self._naming)
        kept = chain.from_iterable(several)
        return iter({written.where: written for written in kept}.values())

    def _likeliest(self, one: Sought, rare: frozenset[str], erasure: Erasure) -> list[Written]:
        """What may say the fact: its own rows and what is near it, then by the words they share."""
        found = {w.where: w for word in rare for w in self._by_word.get(word, ())}
        telling = self._telling(one)
        texts = [w for w in found.values() if not w.by_user and _is_since(w.at, one.since)]
        for written in (w for w in found.values() if w.by_user):
            left = erasure.masked(written.text, written.where, begins=0)
            if _is_talk(written) and not telling.isdisjoint(words_of(left)):
                texts.append(replace(written, text=left))
        texts.sort(key=lambda w: -self._weight(rare & words_of(w.text)))
        mine = {*one.rows, *self.asking}
        besides = [w for w in self._besides[one.id] if not w.by_user or w.where in mine]
        return list({w.where: w for w in (*besides, *texts)}.values())[:_MOST_ASKED]

    def _rare(self, one: Sought) -> frozenset[str]:
        words = chain.from_iterable(map(words_of, (one.text, one.value, *one.quotes)))
        return self._rarest_of(one) | self._below(words, _FEW_ASKED)

    def _telling(self, one: Sought) -> frozenset[str]:
        """Names in what the fact is about, however often they stand, and rare words of its value. The
        rarest of these tells in any case: most texts that have it may be agentd's own.
        """
        named = _names(one)
        words = chain.from_iterable(map(words_of, (one.value, *named)))
        rarest = self._rarest(" ".join(named)) if named and not one.value else self._rarest_of(one)
        always = frozenset(w for w in words_of(" ".join(_telling_names(one))) if self.counts[w])
        return rarest | always | self._below(words, _FEW_TOLD)

    def _below(self, words: Iterable[str], few: int) -> frozenset[str]:
        most = max(few, self.size // _SHARE)
        return frozenset(word for word in words if 0 < self.counts[word] <= most)

    def _rarest_of(self, one: Sought) -> frozenset[str]:
        """The rarest word of the value, or else of each quote or of the sentence: one that stands nowhere,
        if there is such a word, since what shares only the others is about something else.
        """
        told = (one.value,) if one.value else one.quotes or (one.text,)
        return frozenset(chain.from_iterable(map(self._rarest, told)))

    def _rarest(self, text: str) -> frozenset[str]:
        ordered = sorted(words_of(text), key=lambda word: (self.counts[word], word))
        return frozenset(ordered[:1])

    def _weight(self, words: Iterable[str]) -> float:
        return sum(log(1 + self.size / self.counts[word]) for word in sorted(words))


def _names(one: Sought) -> tuple[str, ...]:
    """The names and numbers in what says the fact."""
    return tuple(chain.from_iterable(map(names_in, (one.text, *one.quotes))))


def _telling_names(one: Sought) -> tuple[str, ...]:
    """Those that tell however often they stand: a figure or two stand in too much that is unrelated."""
    value = tuple(word for word in _WORD().findall(one.value) if word[:1].isupper())
    named = (*_names(one), *value)
    return tuple(w for w in named if not w.isdecimal() or len(w) >= _NUMBER)


def words_of(text: str) -> frozenset[str]:
    """The words of a text as they are counted."""
    return frozenset(part for word in _WORD().findall(plain(text)) for part in _parts(word))


def words_with(text: str, is_meant: Callable[[str], bool]) -> Iterator[str]:
    """The words of a text that are meant, as they are written; each is judged as it is counted. Of scripts
    without blanks these are pairs of letters.
    """
    for word in _WORD().findall(text):
        meant = filter(is_meant, words_of(word))
        yield from meant if is_unspaced(word) else (word for _ in meant)


def _is_usual(text: str) -> bool:
    """Whether the words of a text are its bytes: nothing is folded or escaped."""
    return text.isascii() and "\\" not in text


def _bare(text: str) -> bytes:
    """The words of a usual text, with blanks around each."""
    return b" " + text.encode().translate(_BLANKS) + b" "


def _parts(word: str) -> Sequence[str]:
    if _UNSPACED().match(word):
        return [word[n : n + 2] for n in range(max(1, len(word) - 1))]
    return [word[:_STEM]]


def _masked_in(written: Written, erasure: Erasure) -> Sequence[Span]:
    """What is masked of a text: in the user's own files only what he names."""
    if written.is_in_file and written.by_user:
        return erasure.at(written.where).found(written.text)
    return erasure.found(written.text, written.where, begins=0)


def _is_talk(written: Written) -> bool:
    """Whether it was said in a conversation, or typed for one; what the user has written into files stays his."""
    return written.where.startswith((_TALK, _TYPED))


def _is_left(text: str, spans: Sequence[str]) -> bool:
    """Whether there are words in a text besides these, and besides what is masked."""
    left = Erasure(spans=tuple(spans)).masked(text)
    return any(map(str.isalnum, left.replace(MASK, "")))


def _is_copy(written: Written, at: datetime) -> bool:
    """Whether a text like a row's is a copy of it: of the same moment, or typed just before."""
    if written.at is None or not written.where.startswith(_TYPED):
        return written.at == at
    return _BEFORE >= at - written.at >= -_CLOSE


def _is_since(at: datetime | None, since: datetime | None) -> bool:
    return at is None or since is None or at >= since


def _order(written: Written) -> tuple[bool, str, str, int]:
    """Files first, by path and line; then what was said, in its order."""
    path, _, line = written.where.rpartition(":")
    number = int(line) if line.isdecimal() else 0
    if not written.where.startswith("sessions/"):
        return False, path, "", number
    return True, written.at.isoformat() if written.at else "", path, number
