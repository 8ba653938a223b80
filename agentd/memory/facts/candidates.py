"""Finds texts that may state a forgotten fact in other words, and the user's texts that mention it.
Pure.

A text is considered if it shares a word with the fact that is rare in all stored texts, by actual
counts. Words are compared by prefix, in scripts without blanks by bigrams.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import accumulate, chain
from math import log

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.erasure import (
    MASK,
    Erasure,
    PlacedWords,
    StoredText,
    UntracedFact,
    mask_spans,
    sentences_in,
)
from agentd.core.fact import Mention
from agentd.core.spans import Span, within
from agentd.core.text import UNSPACED, at_first_use, is_unspaced, letters, plain
from agentd.memory.facts.known import names_in

Near = tuple[str, int, int]  # path, first and last line

_WORD = at_first_use(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")
_UNSPACED = at_first_use(f"[{UNSPACED}]")
_STEM = 6  # length of the compared prefix
_KEPT = 300  # texts kept per word, the newest
_SHARE = 50  # a word is rare if at most 1 of 50 texts contains it,
_FEW_ASKED, _FEW_TOLD = 12, 4  # or at most 12 texts (for candidates), 4 texts (for mentions)
_EVERYWHERE = 2_000  # a word is no longer searched once it is in more than this many texts
_SHARE_OF_ALL = 25  # and in more than 1 of 25 of all expected texts
_MOST_ASKED = 200  # candidates of one fact
_MOST_TOLD = 50  # mentions
_MOST_NAMING = 1_000  # the user's texts that contain a name: the last ones seen
_NUMBER = 3  # digits of a number that is significant however frequent
_LINES = 20  # lines of a paragraph that a hit may be in
_BLANKS = bytes(ord(chr(n).lower()) if chr(n).isalnum() else 32 for n in range(128)) + bytes(128)
_TALK, _TYPED = "sessions/", "chat_history:"
_BEFORE, _CLOSE = timedelta(minutes=10), timedelta(seconds=1)  # from typing to storing
_VERSION = re.compile(r"@\d+:\d+$")


class OtherMention(Struct, frozen=True):
    """A mention that stays unless the user names it, with the marks that would erase it."""

    mention: Mention
    marks: tuple[PlacedWords, ...]


class Candidate(Struct, frozen=True):
    """A text that may state one of these facts (by id), with all places that contain this very
    text. `words` are the shared words by which it was found; empty if it was found otherwise.
    """

    text: str
    where: tuple[str, ...]
    facts: frozenset[str]
    words: frozenset[str] = frozenset()


class SoughtWords:
    """A set of words, in counted form, to search for in many texts."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self.wanted = wanted
        self._needles = {_needle(word): word for word in wanted if word.isascii()}

    @cached_property
    def _any(self) -> re.Pattern[bytes]:
        return _one_of(self._needles.values())

    def found(self, text: str) -> frozenset[str]:
        """Return the words that the text contains."""
        if not _is_usual(text):
            return self.wanted & words_of(text)
        bare = _bare(text)
        return frozenset(word for needle, word in self._needles.items() if needle in bare)

    def stand_in(self, text: str) -> bool:
        """Whether the text contains any of the words; the text may be in JSON form."""
        if not _is_usual(text):
            return not self.wanted.isdisjoint(words_of(text))
        return any(map(_bare(text).__contains__, self._needles))

    def among(self, texts: Sequence[str]) -> list[int]:
        """Return the indices of the texts for which `stand_in` is true. Most texts need no folding
        and are searched as one joined text.
        """
        usual: Sequence[int] = range(len(texts))
        found: set[int] = set()
        joined = "\n".join(texts)
        if not _is_usual(joined):
            others = [n for n in usual if not _is_usual(texts[n])]
            usual = [n for n in usual if _is_usual(texts[n])]
            found.update(others[n] for n in self._among_folded([texts[n] for n in others]))
            joined = "\n".join(texts[n] for n in usual)
        begins = list(accumulate((len(texts[n]) + 1 for n in usual), initial=1))
        bare = _bare(joined)
        at = self._any.search(bare)
        while at is not None:  # it starts with the blank before the word
            place = bisect_right(begins, at.start() + 1) - 1
            found.add(usual[place])
            at = self._any.search(bare, begins[place + 1] - 1)
        return sorted(found)

    def _among_folded(self, texts: Sequence[str]) -> list[int]:
        """Do what `among` does for texts that need folding. All are folded at once; only those that
        contain a sought word, even inside a longer word, are split into words.
        """
        lines = letters("\n".join(text.replace("\n", " ") for text in texts)).split("\n")
        if len(lines) != len(texts):  # an escape stood for a line end
            lines = list(map(letters, texts))
        return [
            n
            for n, line in enumerate(lines)
            if self._anywhere.search(_encoded(line)) and not self.wanted.isdisjoint(_counted(line))
        ]

    @cached_property
    def _anywhere(self) -> re.Pattern[bytes]:
        words = self.wanted
        return re.compile(_any_of(map(_encoded, words)))


class Survey(Struct):
    """The result of looking through all texts once.

    `near` are lines similar in meaning to a fact, by its id; `quoted` are whole rows of which a
    part is marked, by their text; `twins` are the same marks in copies of these rows (forks of a
    session, input histories); `asking` are the user's words that name a fact in order to forget it,
    by place.

    A word in very many texts has no significance: as soon as it proves common it is no longer
    searched, so that texts with only such words need not be read. `is_sure` says afterwards whether
    that lost nothing.
    """

    sought: Sequence[UntracedFact]
    near: Mapping[str, Collection[Near]] = field(default_factory=dict)
    quoted: Mapping[str, Collection[tuple[PlacedWords, datetime]]] = field(default_factory=dict)
    is_thorough: bool = False  # no word is skipped
    twins: list[PlacedWords] = field(default_factory=list)
    asking: dict[str, StoredText] = field(default_factory=dict)
    more: int = 0  # mentions that `mentions` left out, at least
    size: int = 0  # texts
    counts: Counter[str] = field(default_factory=Counter)  # number of texts by word
    _by_word: dict[str, deque[StoredText]] = field(default_factory=dict)
    _besides: dict[str, list[StoredText]] = field(default_factory=lambda: defaultdict(list))
    _naming: deque[StoredText] = field(default_factory=lambda: deque(maxlen=_MOST_NAMING))
    _names: frozenset[str] = frozenset()  # words that are significant however frequent
    _words: SoughtWords = field(default_factory=lambda: SoughtWords(frozenset()))
    _common: set[str] = field(default_factory=set)  # words found to be common
    _expected: int = 0  # texts
    # Fact ids by the place at which texts are read whatever they say.
    _places: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        """Compute the words to search for, and the places to read whatever they contain."""
        self._words = SoughtWords(frozenset(chain.from_iterable(self._wordings())))
        self._names = words_of(" ".join(chain.from_iterable(map(_telling_names, self.sought))))
        for one in self.sought:
            for where in one.rows:
                self._places[where].add(one.id)
            for path, first, last in self.near.get(one.id, ()):
                self._places[path].add(one.id)
                for line in range(first - _LINES + 1, last + 1):
                    self._places[f"{path}:{line}"].add(one.id)

    def may_be(self, text: str, where: str) -> bool:
        """See TextFilter."""
        return where in self._places or self._words.stand_in(text)

    def among(self, texts: Sequence[str]) -> Sequence[int]:
        """See TextFilter."""
        return self._words.among(texts)

    @property
    def places(self) -> Collection[str]:
        """See TextFilter."""
        return self._places.keys()

    def looked_for(self) -> Callable[[str], bool]:
        """See TextFilter."""
        return self._words.stand_in

    def expect(self, count: int) -> None:
        """See TextFilter."""
        self._expected += count

    @property
    def is_sure(self) -> bool:
        """Whether skipping common words lost nothing: each skipped word is above the limit, and no
        sought expression consists of skipped words alone.
        """
        most = max(_FEW_ASKED, self.size // _SHARE)
        return all(self.counts[word] > most for word in self._common) and not any(
            words and words <= self._common for words in self._wordings()
        )

    def pass_over(self, count: int) -> None:
        """See TextFilter."""
        self.size += count

    def add(self, texts: Iterable[StoredText]) -> None:
        """Look through more texts. Blocking."""
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
            self._drop_common_words()

    def candidates(self, erasure: Erasure) -> tuple[Candidate, ...]:
        """Return agentd's texts that may state one of the facts, and the user's words in
        conversations that name one (without what the erasure masks); the most likely first.
        """
        by_user = {w.text for w in self._all() if w.by_user}
        found: dict[str, Candidate] = {}
        for one in self.sought:
            rare = SoughtWords(self._rare(one))
            for written in self._likeliest(one, rare, erasure):
                text = written.text
                if text in by_user and _VERSION.search(written.where):
                    continue  # the same text is in the user's present file
                known = found.get(text, Candidate(text, (), frozenset()))
                found[text] = Candidate(
                    text,
                    tuple(dict.fromkeys((*known.where, written.where))),
                    known.facts | {one.id},
                    known.words | rare.found(text),
                )
        return tuple(found.values())

    @property
    def telling(self) -> frozenset[str]:
        """The words, in counted form, by which a text mentions one of the facts."""
        return frozenset(chain.from_iterable(map(self._telling, self.sought)))

    def believed(self, marks: Sequence[PlacedWords]) -> tuple[PlacedWords, ...]:
        """Return the marks without doubtful ones: those in the user's words that name no fact, or
        that leave nothing of his text, unless the text is known to state a fact or to ask to forget
        it. A model that marks a whole text may be wrong.
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

    def mentions(self, erasure: Erasure, *, is_done: bool = False) -> tuple[OtherMention, ...]:
        """Return the user's sentences that stay and mention the facts, each once, in an order that
        later texts do not change; once the erasure `is_done`, also sentences that agentd wrote into
        files. Of very many, return those with the rarest words; `more` counts the rest.
        """
        telling = SoughtWords(self.telling)
        found: list[tuple[float, StoredText, Span, str]] = []
        for written in self._all():
            is_told = written.by_user or (is_done and written.is_in_file)
            if not is_told or written.where.startswith(_TYPED):
                continue
            gone = _masked_spans(written, erasure)
            for start, end in sentences_in(written.text):
                left = mask_spans(written.text[start:end], within(gone, start, end))
                if shared := telling.found(left):
                    found.append((self._weight(shared), written, (start, end), left))
        found.sort(key=lambda one: (*_order(one[1]), one[2]))
        same: dict[str, list[tuple[float, StoredText, Span, str]]] = defaultdict(list)
        for one in found:
            same[plain(one[3])].append(one)
        rarest = sorted(same.values(), key=lambda several: -several[0][0])
        self.more = max(0, len(rarest) - _MOST_TOLD)
        kept = sorted(rarest[:_MOST_TOLD], key=lambda s: (*_order(s[0][1]), s[0][2]))
        return tuple(self._also(n, several) for n, several in enumerate(kept, start=1))

    def _also(self, n: int, several: Sequence[tuple[float, StoredText, Span, str]]) -> OtherMention:
        """Return one mention for all sentences with the same words."""
        places = tuple(dict.fromkeys(written.where for _, written, _, _ in several))
        marks = (self._marks(written, span) for _, written, span, _ in several)
        told = Mention(n, places[0], several[0][3], places[1:])
        return OtherMention(told, tuple(dict.fromkeys(chain.from_iterable(marks))))

    def _marks(self, written: StoredText, span: Span) -> tuple[PlacedWords, ...]:
        """Return the marks for one sentence of a text, including its copies in input histories and
        former versions.
        """
        copies = (
            w.where
            for w in self._all()
            if w.text == written.text and (w.where.startswith(_TYPED) or _VERSION.search(w.where))
        )
        said = written.text[slice(*span)]
        return tuple(PlacedWords(where, said) for where in dict.fromkeys((written.where, *copies)))

    def _note_request(self, written: StoredText) -> None:
        """Record a text that asks to forget a fact: its row, or its copy in an input history."""
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

    def _wordings(self) -> Iterator[frozenset[str]]:
        """Yield the words of each expression that states a fact: sentence, value, quotes, and the
        names in these.
        """
        for one in self.sought:
            yield from map(words_of, (one.text, one.value, *one.quotes))
            yield words_of(" ".join(_names(one)))

    def _drop_common_words(self) -> None:
        """Stop searching for words that proved common."""
        most = max(_EVERYWHERE, max(self._expected, self.size) // _SHARE_OF_ALL)
        if common := {word for word in self._words.wanted if self.counts[word] > most}:
            self._common |= common
            self._words = SoughtWords(self._words.wanted - common)
            for word in common:
                del self._by_word[word]

    def _all(self) -> Iterator[StoredText]:
        """Yield each kept text once."""
        several = (*self._by_word.values(), *self._besides.values(), self._naming)
        kept = chain.from_iterable(several)
        return iter({written.where: written for written in kept}.values())

    def _likeliest(
        self, one: UntracedFact, rare: SoughtWords, erasure: Erasure
    ) -> list[StoredText]:
        """Return the texts that may state the fact: its own rows and similar lines, then others by
        shared words.
        """
        found = {w.where: w for word in rare.wanted for w in self._by_word.get(word, ())}
        telling = SoughtWords(self._telling(one))
        texts = [w for w in found.values() if not w.by_user and _is_since(w.at, one.since)]
        for written in (w for w in found.values() if w.by_user):
            left = erasure.masked(written.text, written.where, begins=0)
            if _is_talk(written) and telling.found(left):
                texts.append(replace(written, text=left))
        texts.sort(key=lambda w: -self._weight(rare.found(w.text)))
        mine = {*one.rows, *self.asking}
        besides = [w for w in self._besides[one.id] if not w.by_user or w.where in mine]
        return list({w.where: w for w in (*besides, *texts)}.values())[:_MOST_ASKED]

    def _rare(self, one: UntracedFact) -> frozenset[str]:
        words = chain.from_iterable(map(words_of, (one.text, one.value, *one.quotes)))
        return self._rarest_of(one) | self._below(words, _FEW_ASKED)

    def _telling(self, one: UntracedFact) -> frozenset[str]:
        """Return the significant words of a fact: names in it, however frequent, and rare words of
        its value. The rarest word counts in any case, since most texts with it may be agentd's own.
        """
        named = _names(one)
        words = chain.from_iterable(map(words_of, (one.value, *named)))
        rarest = self._rarest(" ".join(named)) if named and not one.value else self._rarest_of(one)
        always = frozenset(w for w in words_of(" ".join(_telling_names(one))) if self.counts[w])
        return rarest | always | self._below(words, _FEW_TOLD)

    def _below(self, words: Iterable[str], few: int) -> frozenset[str]:
        most = max(few, self.size // _SHARE)
        return frozenset(word for word in words if 0 < self.counts[word] <= most)

    def _rarest_of(self, one: UntracedFact) -> frozenset[str]:
        """Return the rarest word of the value, else of each quote or of the sentence. It may be a
        word that no text contains: then texts sharing the other words are about something else.
        """
        told = (one.value,) if one.value else one.quotes or (one.text,)
        return frozenset(chain.from_iterable(map(self._rarest, told)))

    def _rarest(self, text: str) -> frozenset[str]:
        ordered = sorted(words_of(text), key=lambda word: (self.counts[word], word))
        return frozenset(ordered[:1])

    def _weight(self, words: Iterable[str]) -> float:
        return sum(log(1 + self.size / self.counts[word]) for word in sorted(words))


def _names(one: UntracedFact) -> tuple[str, ...]:
    """Return the names and numbers in the expressions that state the fact."""
    return tuple(chain.from_iterable(map(names_in, (one.text, *one.quotes))))


def _telling_names(one: UntracedFact) -> tuple[str, ...]:
    """Return the names that are significant however frequent; numbers of one or two digits are
    not.
    """
    value = tuple(word for word in _WORD().findall(one.value) if word[:1].isupper())
    named = (*_names(one), *value)
    return tuple(w for w in named if not w.isdecimal() or len(w) >= _NUMBER)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in counted form."""
    return _counted(plain(text))


def _counted(folded: str) -> frozenset[str]:
    return frozenset(part for word in _WORD().findall(folded) for part in _parts(word))


def words_with(text: str, is_meant: Callable[[str], bool]) -> Iterator[str]:
    """Yield the words of a text for which `is_meant` is true of the counted form, as they are
    written; bigrams in scripts without blanks.
    """
    for word in _WORD().findall(text):
        meant = filter(is_meant, words_of(word))
        yield from meant if is_unspaced(word) else (word for _ in meant)


def _is_usual(text: str) -> bool:
    """Whether the words of a text can be found in its bytes: it is ASCII without escapes."""
    return text.isascii() and "\\" not in text


def _needle(word: str) -> bytes:
    """Return what stands for the word in a `_bare` text: only the beginning of a long one."""
    return f" {word} ".encode() if len(word) < _STEM else f" {word}".encode()


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _one_of(words: Iterable[str]) -> re.Pattern[bytes]:
    return re.compile(_any_of(map(_needle, words)))


def _any_of(needles: Iterable[bytes]) -> bytes:
    """Return the pattern of any of these byte strings; letters that several start with come once,
    which halves the time of a search. If there are none it matches nothing.
    """
    ends: dict[int, list[bytes]] = defaultdict(list)
    for needle in needles:
        if not needle:
            return b""  # the others only go on from here
        ends[needle[0]].append(needle[1:])
    parts = [re.escape(bytes((first,))) + _any_of(rest) for first, rest in sorted(ends.items())]
    if len(parts) == 1:
        return parts[0]
    return b"(?:" + b"|".join(parts) + b")" if parts else b"(?!)"


def _bare(text: str) -> bytes:
    """Return the words of a usual text in lower case, each between blanks."""
    return b" " + text.encode().translate(_BLANKS) + b" "


def _parts(word: str) -> Sequence[str]:
    if _UNSPACED().match(word):
        return [word[n : n + 2] for n in range(max(1, len(word) - 1))]
    return [word[:_STEM]]


def _masked_spans(written: StoredText, erasure: Erasure) -> Sequence[Span]:
    """Return the spans to mask in a text: in the user's own files only what he named."""
    if written.is_in_file and written.by_user:
        return erasure.at(written.where).found(written.text)
    return erasure.found(written.text, written.where, begins=0)


def _is_talk(written: StoredText) -> bool:
    """Whether the text was said in a conversation, or typed for one; what the user wrote into files
    stays his.
    """
    return written.where.startswith((_TALK, _TYPED))


def _is_left(text: str, spans: Sequence[str]) -> bool:
    """Whether words remain in a text besides these spans and masks."""
    left = Erasure(spans=tuple(spans)).masked(text)
    return any(map(str.isalnum, left.replace(MASK, "")))


def _is_copy(written: StoredText, at: datetime) -> bool:
    """Whether a text equal to a row's is its copy: of the same time, or typed just before."""
    if written.at is None or not written.where.startswith(_TYPED):
        return written.at == at
    return _BEFORE >= at - written.at >= -_CLOSE


def _is_since(at: datetime | None, since: datetime | None) -> bool:
    return at is None or since is None or at >= since


def _order(written: StoredText) -> tuple[bool, str, str, int]:
    """Return the sort key of a text: files first, by path and line; then conversations, by time."""
    path, _, line = written.where.rpartition(":")
    number = int(line) if line.isdecimal() else 0
    if not written.where.startswith("sessions/"):
        return False, path, "", number
    return True, written.at.isoformat() if written.at else "", path, number
