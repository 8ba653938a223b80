"""The request to a model that marks the words stating forgotten facts, the parsing of its answer,
and the effect on the user's words.

In the request facts are `[k3f9] sentence` and candidates `[1 memory/2026-05-04.md:3] text`, with
further lines indented. The answer is a JSON array of objects `{n, span}`: the exact words that
state one of the facts.

A quote that proves a fact may be a whole sentence. Of it the marked words are erased, and those of
the fact's value that occur in no marked words. Only if there are neither, the whole quote is
erased, and that is reported.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.erasure import Erasure, Excerpt, PlacedWords, StoredText, UntracedFact
from agentd.core.errors import AgentdError, ProviderError
from agentd.core.paths import prompt
from agentd.core.ports import Clock
from agentd.core.spans import Span, merge_spans
from agentd.engine.rendering import fence
from agentd.engine.tokens import of_text
from agentd.memory.facts.candidates import Candidate, words_of, words_with
from agentd.memory.facts.model_answer import number, objects
from agentd.memory.facts.quotes import is_short

log = structlog.get_logger()

Ask = Callable[[str, str], Awaitable[str]]

_SYSTEM = prompt("forgetting")
_LIMIT = 40.0  # seconds for all requests of one try: forgetting should be done within a minute
_SOON = 15.0  # of these, for texts known to state it, which come first
_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0  # seconds until the next try
_FACTS, _CANDIDATES = "facts to forget", "candidates"
_ASK = "Mark now what says one of these facts."
_PORTION = 4_000  # approximate tokens of one request
_MOST_FACTS = 20  # facts in one request
_LONGEST = 1_500  # characters of a candidate that is shown whole; of a longer one, passages are
_PASSAGE = re.compile(rf"(?s)(?=\S).{{1,{_LONGEST}}}(?=\s|\Z)|\S{{{_LONGEST}}}")
_MOST_PASSAGES = 10  # passages shown of one text
_NONE = re.compile(r"\[\s*\]")


class MarkedPassage(Struct, frozen=True):
    """A candidate, or a part of a long one, as it is shown to the model."""

    text: str
    where: tuple[str, ...]


class MarkingRequest(Struct, frozen=True):
    """One request, which asks which of the passages state one of the facts."""

    facts: tuple[UntracedFact, ...]
    passages: tuple[MarkedPassage, ...]
    candidates: tuple[Candidate, ...]

    @property
    def text(self) -> str:
        """The text of the request."""
        facts = "\n".join(f"[{one.id}] {one.text}" for one in self.facts)
        shown = "\n".join(_passage_text(n, one) for n, one in enumerate(self.passages, start=1))
        return "\n\n".join((fence(_FACTS, facts), fence(_CANDIDATES, shown), _ASK))

    def marks(self, answer: str) -> tuple[PlacedWords, ...] | None:
        """Return the marks in the answer; None if it is no answer. A span that is not in its
        passage is ignored.
        """
        items = list(objects(answer))
        if not items and not _NONE.search(answer):
            return None
        return tuple(dict.fromkeys(mark for item in items for mark in self._marks(item)))

    def _marks(self, item: dict[str, object]) -> Iterator[PlacedWords]:
        n, span = number(item.get("n")), item.get("span")
        if n is None or not 1 <= n <= len(self.passages) or not isinstance(span, str):
            return
        passage = self.passages[n - 1]
        for words in _standing(span[:_LONGEST], passage.text):
            for where in passage.where:
                yield PlacedWords(where, words)


class Marker:
    """Asks a model which words of candidates state forgotten facts. `ask` gets a system prompt and
    a text; with None nothing is ever answered. After a failure there is a pause, longer each time.
    """

    def __init__(self, ask: Ask | None, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._answered: set[tuple[str, str]] = set()  # fact id and text already judged for it
        # The texts and marks of the last call of `within`.
        self._last: tuple[tuple[Candidate, ...], tuple[PlacedWords, ...]] = ((), ())
        self._pause = _PAUSE
        self._rests_until = 0.0
        self.fault: AgentdError | None = None  # why some candidates are not judged

    @property
    def is_resting(self) -> bool:
        """Whether the model may not be asked yet."""
        return self._ask is None or self._clock.monotonic() < self._rests_until

    async def marks(
        self, sought: Sequence[UntracedFact], candidates: Sequence[Candidate]
    ) -> tuple[tuple[PlacedWords, ...], tuple[Candidate, ...]]:
        """Return the marks in the candidates that are not judged yet, and the candidates that stay
        unjudged.
        """
        fresh = [one for one in candidates if not self._is_answered(one)]
        if not fresh:
            self.fault = None
            return (), ()
        if self._ask is None:
            self.fault = ProviderError("no model is there to look for it")
            return (), tuple(fresh)
        marks: list[PlacedWords] = []
        if not self.is_resting:
            try:
                async with asyncio.timeout(_LIMIT):
                    for portion in await asyncio.to_thread(list, portions(sought, fresh)):
                        marks += await self._ask_model(portion)
                        self._looked_at(portion)
            except (AgentdError, TimeoutError) as error:
                self._rest(error)
            else:
                self.fault, self._pause = None, _PAUSE
        left = tuple(one for one in fresh if not self._is_answered(one))
        return tuple(dict.fromkeys(marks)), left

    async def within(
        self, sought: Sequence[UntracedFact], texts: Sequence[Candidate]
    ) -> tuple[PlacedWords, ...] | None:
        """Return the marks in texts that are known to state the facts; the same ones again for the
        same texts. None if no model answers.
        """
        if self._ask is None or (texts != self._last[0] and self.is_resting):
            return None
        if texts != self._last[0]:
            try:
                async with asyncio.timeout(_SOON):
                    asked = [await self._ask_model(portion) for portion in portions(sought, texts)]
            except (AgentdError, TimeoutError) as error:
                self._rest(error)
                return None
            self._last = tuple(texts), tuple(dict.fromkeys(chain.from_iterable(asked)))
        return self._last[1]

    def masked(self, candidates: Iterable[Candidate], erasure: Erasure) -> None:
        """Record that candidates have been masked, so that their remaining text need not be judged
        again.
        """
        for one in candidates:
            if self._is_answered(one):
                text = erasure.masked(one.text, *one.where, begins=0)
                self._answered |= {(fact_id, text) for fact_id in one.facts}

    def forget(self) -> None:
        """Delete all remembered words, because the erasure is complete."""
        self._answered.clear()
        self._last = (), ()
        self.fault, self._pause, self._rests_until = None, _PAUSE, 0.0

    async def _ask_model(self, portion: MarkingRequest) -> tuple[PlacedWords, ...]:
        assert self._ask is not None
        answer = await self._ask(_SYSTEM, portion.text)
        marks = await asyncio.to_thread(portion.marks, answer)
        log.info(
            "forgetting_asked",
            facts=len(portion.facts),
            candidates=len(portion.candidates),
            marks=None if marks is None else len(marks),
        )
        if marks is None:
            raise ProviderError("the model's answer cannot be read")
        return marks

    def _looked_at(self, portion: MarkingRequest) -> None:
        ids = frozenset(one.id for one in portion.facts)
        for one in portion.candidates:
            self._answered |= {(fact_id, one.text) for fact_id in one.facts & ids}

    def _is_answered(self, candidate: Candidate) -> bool:
        return all((fact_id, candidate.text) in self._answered for fact_id in candidate.facts)

    def _rest(self, error: AgentdError | TimeoutError) -> None:
        late = ProviderError("the model took too long", kind="timeout")
        fault = self.fault = error if isinstance(error, AgentdError) else late
        self._rests_until = self._clock.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        log.warning("forgetting_not_answered", reason=fault.reason)


def _standing(span: str, text: str) -> Iterator[str]:
    """Yield the whole words at which a span occurs in the text. A span that begins or ends within a
    word, as in scripts that join particles to the next word, is extended to the word.
    """
    found = Erasure(spans=(span,)).found(text)
    if not found and (at := text.find(span)) >= 0:
        start, end = at, at + len(span)
        while start and text[start - 1 : start + 1].isalnum():
            start -= 1
        while end < len(text) and text[end - 1 : end + 1].isalnum():
            end += 1
        found = ((start, end),)
    yield from (text[start:end] for start, end in found)


def portions(
    sought: Sequence[UntracedFact], candidates: Iterable[Candidate]
) -> Iterator[MarkingRequest]:
    """Yield requests of bounded size for all candidates."""
    left = list(candidates)
    for at in range(0, len(sought), _MOST_FACTS):
        facts = tuple(sought[at : at + _MOST_FACTS])
        ids = frozenset(one.id for one in facts)
        room = fixed = _PORTION - sum(of_text(one.text) for one in facts)
        passages: list[MarkedPassage] = []
        shown: list[Candidate] = []
        for candidate in (one for one in left if one.facts & ids):
            for passage in _passages(candidate):
                room -= of_text(passage.text)
                if room < 0 and passages:
                    yield MarkingRequest(facts, tuple(passages), tuple(shown))
                    room, passages, shown = fixed - of_text(passage.text), [], []
                passages.append(passage)
            shown.append(candidate)
        if passages:
            yield MarkingRequest(facts, tuple(passages), tuple(shown))


def _passages(candidate: Candidate) -> list[MarkedPassage]:
    if len(candidate.text) <= _LONGEST:
        return [MarkedPassage(candidate.text, candidate.where)]
    parts = _PASSAGE.findall(candidate.text)
    if candidate.words:
        parts = [part for part in parts if candidate.words & words_of(part)]
    return [MarkedPassage(part, candidate.where) for part in parts[:_MOST_PASSAGES]]


def _passage_text(n: int, passage: MarkedPassage) -> str:
    text = passage.text.replace("\n", "\n  ")
    return f"[{n} {passage.where[0]}] {text}"


_TELLING = 3  # least length of a significant word in scripts with blanks,
_LONGER = 4  # and of one taken from a sentence
_ENDING = 3  # characters by which the endings of two forms may differ


class _Quote(Struct, frozen=True):
    """A quote from the evidence, its places, and the facts that it proves."""

    text: str
    marks: tuple[PlacedWords, ...]
    facts: tuple[UntracedFact, ...]

    @property
    def says_more(self) -> bool:
        """Whether it has a significant word that none of its facts has."""
        own = [word for one in self.facts for word in words_of(one.text)]
        return any(not _stands_in(word, own) for word in _telling(self.text))

    def said(self, marks: Iterable[PlacedWords]) -> tuple[Span, ...]:
        """Return the spans that state the facts: the marked ones, and the words of the facts'
        values that occur in no marked words.
        """
        places = {mark.where for mark in self.marks}
        spans = tuple(mark.span for mark in marks if mark.where in places)
        marked = Erasure(spans=spans).found(self.text)
        found = list(words_of(" ".join(self.text[a:b] for a, b in marked)))
        missed = [value for value in _values(self.facts) if not _stands_in(value, found)]
        return merge_spans((*marked, *_naming(self.text, missed)))


def passages(erasure: Erasure) -> tuple[Candidate, ...]:
    """Return the quotes that say more than their facts, as candidates for the request."""
    return tuple(
        Candidate(
            one.text,
            tuple(dict.fromkeys(mark.where for mark in one.marks)),
            frozenset(fact.id for fact in one.facts),
        )
        for one in _quotes(erasure)
    )


def narrow(
    erasure: Erasure, marks: Collection[PlacedWords] | None
) -> tuple[Erasure, tuple[str, ...]]:
    """Return the erasure with quotes narrowed to the words that state the facts, and the places
    where a quote has to be erased as a whole. `marks` is None if no model could be asked.
    """
    parts: dict[str, tuple[Span, ...]] = {}
    besides: list[str] = []
    for quote in _quotes(erasure):
        said = quote.said(marks or ())
        if not said:
            besides += (mark.where for mark in quote.marks)
        elif any(map(str.isalnum, "".join(_between(quote.text, said)))):
            parts[quote.text] = said
    return _within(erasure, parts), tuple(dict.fromkeys(besides))


def still_asking(
    asking: Iterable[StoredText], erasure: Erasure, telling: Collection[str]
) -> Iterator[PlacedWords]:
    """Yield marks for the words in requests to forget that still reveal a fact after masking: those
    among the `telling` words, in counted form.
    """
    for written in asking:
        gone = erasure.found(written.text, written.where, begins=0)
        for left in _between(written.text, gone):
            for word in words_with(left, telling.__contains__):
                yield PlacedWords(written.where, word)


def _quotes(erasure: Erasure) -> Iterator[_Quote]:
    """Yield the quotes with significant words that their facts lack."""
    by_text: dict[str, list[PlacedWords]] = {}
    for mark in erasure.marks:
        if mark.start is not None:
            by_text.setdefault(mark.span, []).append(mark)
    for text, marks in by_text.items():
        facts = tuple(one for one in erasure.sought if text in one.quotes)
        quote = _Quote(text, tuple(marks), facts)
        if facts and quote.says_more:
            yield quote


def _between(text: str, spans: Iterable[Span]) -> Iterator[str]:
    done = 0
    for start, end in spans:
        yield text[done:start]
        done = end
    yield text[done:]


def _naming(text: str, values: Sequence[str]) -> tuple[Span, ...]:
    """Return the spans of the words in a text that equal one of these, ignoring endings."""
    naming = words_with(text, lambda word: _stands_in(word, values))
    return Erasure(spans=tuple(naming)).found(text)


def _within(erasure: Erasure, parts: Mapping[str, tuple[Span, ...]]) -> Erasure:
    """Return the erasure with parts of quotes in place of the quotes."""
    if not parts:
        return erasure
    words = {text: tuple(text[a:b] for a, b in spans) for text, spans in parts.items()}
    marks: list[PlacedWords] = []
    for mark in erasure.marks:
        if mark.start is None or mark.span not in parts:
            marks.append(mark)
        else:
            marks += (
                PlacedWords(mark.where, mark.span[a:b], mark.start + a) for a, b in parts[mark.span]
            )
    said = [text for text in erasure.spans if text in words and not is_short(text)]
    return replace(
        erasure,
        spans=tuple(text for text in erasure.spans if text not in words),
        marks=tuple(dict.fromkeys(marks)),
        sought=tuple(_with_parts(one, words) for one in erasure.sought),
        excerpts=(*erasure.excerpts, *(Excerpt(text, words[text]) for text in said)),
    )


def _with_parts(one: UntracedFact, words: Mapping[str, tuple[str, ...]]) -> UntracedFact:
    quotes = [part for quote in one.quotes for part in words.get(quote, (quote,))]
    return replace(one, quotes=tuple(dict.fromkeys(quotes)))


def _values(facts: Iterable[UntracedFact]) -> list[str]:
    """Return the words of the facts' values; of the sentence if a fact has no value."""
    found: list[str] = []
    for one in facts:
        found += _telling(one.value) if one.value else _telling(one.text, _LONGER)
    return found


def _telling(text: str, least: int = _TELLING) -> list[str]:
    """Return the significant words of a text; short ones only if there are no others."""
    words = words_of(text)
    telling = [w for w in words if len(w) >= least or not w.isascii() or w.isdecimal()]
    return telling or list(words)


def _stands_in(word: str, others: Iterable[str]) -> bool:
    """Whether a word equals one of the others, ignoring endings."""
    return any(
        word == other
        or (
            min(len(word), len(other)) >= _TELLING
            and abs(len(word) - len(other)) <= _ENDING
            and (word.startswith(other) or other.startswith(word))
        )
        for other in others
    )
