"""Marks search hits that state outdated facts.

What was once true stays in transcripts and notes. The owner still finds it, but marked with the
line of the current fact, and after that. Hits are recognised by evidence only: the rows in which an
old fact was said, its exact sentence, the exact words that stated it, and its line on the page of
facts.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.errors import AgentdError, FileMissing
from agentd.core.fact import Evidence, Fact, FactStatus, Provenance
from agentd.core.ports import Facts, FactStore, NoteReader, Recall
from agentd.core.search import (
    OWNER,
    OWNERS,
    Chunk,
    Hit,
    SearchQuery,
    SearchResult,
    Source,
    audience_of,
)
from agentd.core.text import UNSPACED, at_first_use
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import FACTS_PATH, FileView, Reader
from agentd.memory.facts.keeping import parse_page
from agentd.memory.facts.known import Known, comparable
from agentd.memory.facts.links import terms
from agentd.memory.facts.quotes import is_short
from agentd.memory.index.ranking.packing import within

log = structlog.get_logger()


Said = Callable[[SessionKey, int], Awaitable[str]]

MOST = 1_000  # past facts, the latest, that hits are compared with
LONGEST = 4_000  # characters of a hit that are compared

_READER = Reader(SessionKey("facts"), SessionKind.OWNER)
_PATIENCE = 1.0  # seconds that a search waits until the facts are level with their page
_LETTERS = 4  # bytes per token, about
_PAST = frozenset({FactStatus.SUPERSEDED, FactStatus.ENDED})

_INSIDE = at_first_use(f"[^\\W_{UNSPACED}]{{2}}")  # two characters inside one word


class Outdated:
    """A Recall around another one. `said` returns the text of a transcript row, "" if there is
    none; `max_tokens` limits the hits of searches that set no limit themselves.
    """

    def __init__(
        self,
        recall: Recall,
        facts: Facts,
        store: FactStore,
        workspace: NoteReader,
        said: Said,
        max_tokens: int = 0,
        patience: float = _PATIENCE,
    ) -> None:
        self._recall = recall
        self._facts = facts
        self._store = store
        self._workspace = workspace
        self._said = said
        self._max_tokens = max_tokens
        self._patience = patience
        self._digest = ""
        self._past = PastFacts()
        self._quotes: dict[Evidence, str] = {}

    async def search(self, query: SearchQuery, reader: Reader) -> SearchResult:
        """See Recall. For the owner, a hit that states a past fact names the line of the current
        fact, which comes before it; or the line that says until when the fact held.
        """
        found = await self._recall.search(query, reader)
        if not found.hits or audience_of(reader.session, reader.kind) != OWNER:
            return found
        try:
            async with asyncio.timeout(self._patience):
                await self._follow()
        except TimeoutError:
            log.info("facts_too_late", seconds=self._patience)
        except AgentdError as error:
            # The hits are returned unmarked.
            log.warning("facts_not_followed", reason=error.reason)
        if not self._past:
            return found
        adds = query.sources is None or Source.NOTES in query.sources
        hits = self._past.arranged(found.hits, query.text, adds=adds)
        if len(hits) > len(found.hits):
            hits = self._fitted(hits, query)
        return replace(found, hits=hits)

    async def read(self, path: str, reader: Reader) -> FileView:
        """See Recall."""
        return await self._recall.read(path, reader)

    async def is_outside(self, path: str, first: int, last: int, text: str) -> bool:
        """See Recall."""
        return await self._recall.is_outside(path, first, last, text)

    async def has_outside_name(self, places: Sequence[str]) -> bool:
        """See Recall."""
        return await self._recall.has_outside_name(places)

    async def _follow(self) -> None:
        """Rebuild the index of past facts if the page has changed."""
        facts = await self._facts.all()
        try:
            view = await self._workspace.read_damaged(FACTS_PATH, _READER)
        except FileMissing:
            self._digest, self._past = "", PastFacts()
            return
        if view.digest == self._digest:
            return
        page = await parse_page(view.text)
        lines = {place.line.id: place.number for place in page.placed() if place.line.id}
        known = await asyncio.to_thread(Known.of, facts)
        old = [fact for fact in facts if fact.status in _PAST and fact.id in lines]
        old = sorted(old, key=lambda fact: fact.noted_at)[-MOST:]
        pairs = [(fact, known.current(fact.id) or fact) for fact in old]
        pairs = [(fact, now) for fact, now in pairs if now.id in lines]
        evidence = await self._store.evidence([fact.id for pair in pairs for fact in pair])
        quotes = await self._quoted(one for fact, _ in pairs for one in evidence.get(fact.id, ()))
        places = [(fact, now, lines[fact.id], lines[now.id]) for fact, now in pairs]
        holding = [fact for fact in facts if fact.is_active]
        self._past = await asyncio.to_thread(_past, places, evidence, quotes, holding)
        self._digest = view.digest

    async def _quoted(self, evidence: Iterable[Evidence]) -> Mapping[Evidence, str]:
        """Return the quoted words of evidence, "" for those too short to identify a fact."""
        known, self._quotes = self._quotes, {}
        for one in evidence:
            if one.session and one.end > one.start and not one.is_context:
                text = known.get(one)
                if text is None:
                    text = (await self._said(one.session, one.seq))[one.start : one.end]
                self._quotes[one] = "" if is_short(text) else text
        return self._quotes

    def _fitted(self, hits: Sequence[Hit], query: SearchQuery) -> tuple[Hit, ...]:
        costs = [-(-len(hit.chunk.text.encode(errors="replace")) // _LETTERS) for hit in hits]
        budget = query.max_tokens or self._max_tokens or None
        return tuple(hits[at] for at in within(costs, budget, query.limit))


class PastFact(Struct, frozen=True):
    """A past fact and its current successor (itself if it has none), with the lines of both on the
    page.
    """

    fact: Fact
    now: Fact
    line: int
    now_line: int
    now_rows: frozenset[Provenance]
    now_words: str | None

    @property
    def place(self) -> str:
        """The line of the current fact, as `path:line`."""
        return f"{FACTS_PATH}:{self.now_line}"

    @property
    def is_replaced(self) -> bool:
        """Whether the fact has a current successor."""
        return self.now is not self.fact

    @property
    def topic(self) -> frozenset[str]:
        """The terms of both facts."""
        return terms(f"{self.fact.text} {self.now.text}")

    def is_told_of(self, hit: Hit) -> bool:
        """Whether a hit also states the current fact, and so reports the change."""
        said = comparable(hit.chunk.text[:LONGEST])
        is_in_words = self.now_words is not None and self.now_words in said
        return is_in_words or bool(self.now_rows & frozenset(_rows(hit)))

    def hit(self, score: float) -> Hit:
        """Return the line of the current fact as a hit, for a search that did not find it."""
        day, line = self.now.valid_from.date(), self.now_line
        chunk = Chunk(FACTS_PATH, line, line, self.now.text, Source.NOTES, OWNERS, day)
        return Hit(chunk, score, {"current": 1.0})


class PastFacts(Struct):
    """The past facts, indexed by rows, lines and phrases. Pure."""

    by_row: dict[Provenance, list[PastFact]] = field(default_factory=lambda: defaultdict(list))
    by_line: dict[int, PastFact] = field(default_factory=dict)
    by_word: dict[str, list[tuple[str, PastFact]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    holding: dict[Provenance, list[Fact]] = field(default_factory=lambda: defaultdict(list))

    def __bool__(self) -> bool:
        """Whether there are past facts."""
        return bool(self.by_line)

    def add(self, gone: PastFact, rows: Iterable[Provenance], phrases: Iterable[str]) -> None:
        """Add a fact with the rows in which it was said and the phrases that state it."""
        self.by_line[gone.line] = gone
        for row in rows:
            self.by_row[row].append(gone)
        for phrase in filter(None, map(comparable, phrases)):
            if words := terms(phrase):
                self.by_word[max(words, key=len)].append((phrase, gone))

    def arranged(self, hits: Sequence[Hit], query: str, *, adds: bool = True) -> tuple[Hit, ...]:
        """Mark the hits that state past facts. These hits, and those that report the change, come
        after the line of the current fact, which is inserted if it was not found and `adds` is set.
        """
        asked = terms(query)
        olds = [self._outdated_in(hit, asked) for hit in hits]
        order = [
            replace(hit, newer=old.place) if old and not old.is_told_of(hit) else hit
            for hit, old in zip(hits, olds, strict=True)
        ]
        firsts: dict[int, tuple[PastFact, Hit]] = {}
        for hit, old in zip(order, olds, strict=True):
            if old is not None and old.is_replaced:
                firsts.setdefault(old.now_line, (old, hit))
        for old, first in firsts.values():
            _put_first(old, first, order, adds=adds)
        return tuple(order)

    def _outdated_in(self, hit: Hit, asked: frozenset[str]) -> PastFact | None:
        """Return the past fact that a hit states: of several, the one the query asks about. None if
        the hit's row also states a current fact that fits the query better.
        """
        if hit.chunk.path == FACTS_PATH:
            found = [self.by_line[line] for line in _lines(hit) if line in self.by_line]
            return next((old for old in found if old.now_line not in _lines(hit)), None)
        said = comparable(hit.chunk.text[:LONGEST])
        rows = frozenset(_rows(hit))
        found = [old for row in rows for old in self.by_row.get(row, ())]
        found += [old for phrase, old in self._phrases(said) if _stands_in(phrase, said)]
        best = max(found, key=lambda old: len(asked & old.topic), default=None)
        others = [fact for row in rows for fact in self.holding.get(row, ())]
        most = max((len(asked & terms(fact.text)) for fact in others), default=0)
        return best if best is not None and len(asked & best.topic) >= most else None

    def _phrases(self, said: str) -> Iterator[tuple[str, PastFact]]:
        for word in self.by_word.keys() & terms(said):
            yield from self.by_word[word]


def _past(
    places: Iterable[tuple[Fact, Fact, int, int]],
    evidence: Mapping[str, Sequence[Evidence]],
    quotes: Mapping[Evidence, str],
    holding: Iterable[Fact],
) -> PastFacts:
    past = PastFacts()
    for fact in holding:
        if fact.origin.session:
            past.holding[fact.origin].append(fact)
    for fact, now, line, now_line in places:
        own = [one for one in evidence.get(fact.id, ()) if one.session and not one.is_context]
        later = evidence.get(now.id, ()) if now is not fact else ()
        now_rows = frozenset(one.origin for one in later if one.session)
        now_words = comparable(now.text) if now is not fact else None
        gone = PastFact(fact, now, line, now_line, now_rows, now_words)
        words = [quotes[one] for one in own if one in quotes]
        past.add(gone, [one.origin for one in own], [fact.text, *words])
    return past


def _stands_in(phrase: str, said: str) -> bool:
    """Whether the phrase occurs in the text, as whole words in scripts with blanks."""
    start = said.find(phrase)
    while start >= 0:
        edges = (said[max(0, start - 1) : start + 1], said[start + len(phrase) - 1 :][:2])
        if not any(_INSIDE().fullmatch(edge) for edge in edges):
            return True
        start = said.find(phrase, start + 1)
    return False


def _rows(hit: Hit) -> Iterator[Provenance]:
    chunk = hit.chunk
    if chunk.source is Source.SESSIONS:
        session = SessionKey(chunk.path.removeprefix("sessions/").removesuffix(".jsonl"))
        for seq in range(chunk.start_line, chunk.end_line + 1):
            yield Provenance(session, seq)


def _lines(hit: Hit) -> range:
    chunk = hit.chunk
    return range(chunk.start_line, chunk.end_line + 1) if chunk.path == FACTS_PATH else range(0)


def _put_first(old: PastFact, before: Hit, order: list[Hit], *, adds: bool) -> None:
    """Put the line of the current fact before this hit."""
    first = next(n for n, hit in enumerate(order) if hit.chunk is before.chunk)
    there = next((n for n, hit in enumerate(order) if old.now_line in _lines(hit)), None)
    if there is not None:
        found = replace(order.pop(there), newer="")
        if there > first:
            there, found = first, replace(found, score=max(found.score, before.score))
        order.insert(there, found)
    elif adds:
        order.insert(first, old.hit(before.score))
