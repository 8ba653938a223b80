"""What the owner asks of his facts: by a tool, a slash command or the command line."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from agentd.core.errors import AgentdError
from agentd.core.fact import (
    NO_SESSION,
    Category,
    ErasureReport,
    Evidence,
    Fact,
    FactChange,
    FactOperation,
    FactSource,
    FactStatus,
    ForgetRequest,
    Matches,
    OperationKind,
    OperationResult,
    Refusal,
)
from agentd.core.message import ToolUse
from agentd.core.offloading import offload
from agentd.core.ports import Clock, Transcripts
from agentd.core.text import UNSPACED
from agentd.core.transcript import Row, opens_turn
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.memory.facts import quotes, withheld
from agentd.memory.facts.book import FactBook
from agentd.memory.facts.changes import LISTED, merged_lately
from agentd.memory.facts.keeping import PendingForgetting
from agentd.memory.facts.known import comparable, fold_text, names_in
from agentd.memory.facts.learning import Learning
from agentd.memory.facts.reader import PassageReader, spoken_in
from agentd.memory.facts.wire import SpokenMessage
from agentd.memory.facts.withheld import WithheldSecret

log = structlog.get_logger()

_PATIENCE = 20.0  # seconds to wait until recent messages are read
_TURNS = 20  # turns in which a quote is searched
_REQUESTS = 3  # turns that may contain the request to forget
_TOOL = "forget"
_MAYBE = 5
_MOST = 20
_PAGE = 500  # rows read at once
_WORD = re.compile(r"\w+")
_STEM = 4  # least common prefix of two forms of a word
_ENDING = 3  # longest ending of such a form
_TELLING = 3  # least length of a word that may identify a fact
_FRAME = frozenset({"the", "user"})  # words that begin most sentences of facts
_UNSPACED = re.compile(f"[{UNSPACED}]")


class FactsService:
    """The FactService, and undo of changes."""

    def __init__(
        self,
        book: FactBook,
        reader: PassageReader,
        learner: Learning,
        sessions: Transcripts,
        clock: Clock,
        forgetting: PendingForgetting,
    ) -> None:
        self._book = book
        self._forgetting = forgetting
        self._reader = reader
        self._learner = learner
        self._sessions = sessions
        self._clock = clock

    async def remember(
        self, text: str, session: SessionKey, quote: str = "", replaces: Sequence[str] = ()
    ) -> tuple[OperationResult, ...]:
        """See FactService. While no model answers, the owner's sentence is kept as he wrote it."""
        found = await self._find_saying(session, quote)
        if found is None:
            return ()
        spoken, asked = found
        try:
            learned = await self._reader.read_now(spoken, session, asked, hinted=replaces)
        except (AgentdError, TimeoutError) as error:
            log.warning("remembered_unread", reason=type(error).__name__)
            sentence = _sentence(spoken, asked)
            return await self._verbatim(sentence, session, asked) if sentence else ()
        kept = tuple(one for one in learned if one.fact is not None or one.gone)
        self._learner.tell(session, kept)  # no notice row: the tool call itself is on record
        return kept

    async def remember_alone(self, session: SessionKey, quote: str) -> tuple[OperationResult, ...]:
        """See FactService."""
        found = await self._find_saying(session, quote)
        sentence = _sentence(*found) if found is not None else ""
        if found is None or not sentence:
            return ()
        spoken, asked = found
        try:
            learned = await self._reader.read_now(spoken[-1:], session, asked)
        except (AgentdError, TimeoutError) as error:
            log.warning("remembered_unread", reason=type(error).__name__)
            learned = ()
        kept = tuple(one for one in learned if one.fact is not None or one.gone)
        self._learner.tell(session, kept)
        return kept or await self._verbatim(sentence, session, asked)

    async def keep(
        self, text: str, session: SessionKey = NO_SESSION, category: Category | None = None
    ) -> tuple[OperationResult, ...]:
        """See FactService."""
        now = self._clock.now()
        words = Evidence(now)
        if await offload(len(text), lambda: withheld.secret_spans(text)):
            return await self._verbatim(text, session, words, category)  # refused with the reason
        said = (SpokenMessage(NO_SESSION, 0, now, text, is_user=True),)
        try:
            learned = await self._reader.read_now(said, session, words, category=category)
        except (AgentdError, TimeoutError) as error:
            log.warning("remembered_unread", reason=type(error).__name__)
            learned = ()
        kept = tuple(one for one in learned if one.fact is not None or one.gone)
        return kept or await self._verbatim(text, session, words, category)

    async def keep_verbatim(
        self, sentence: str, session: SessionKey
    ) -> tuple[OperationResult, ...]:
        """See FactService."""
        return await self._verbatim(sentence, session, Evidence(self._clock.now()))

    async def matching(self, query: str, *, every: bool = False) -> Matches:
        """Return the fact with that id, or with exactly those words; else the one that contains all
        words of the query that any fact contains; with `every`, all facts that contain them. Past
        facts are considered only when no current fact matches. Recent messages are read first,
        since they may change what holds. A secret that the owner has told is no fact, but is found,
        too.
        """
        known = await self._book.all()
        await self._caught_up()
        if named := _match_ids(query, known, await self._book.all()):
            return named
        matches = await self._matching(query, every=every)
        if not matches.sure and (told := withheld.match_secrets(query, await self._secrets())):
            return Matches(tuple(one.fact for one in told))
        return matches

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        session: SessionKey = NO_SESSION,
        typed: str = "",
    ) -> ErasureReport:
        """See FactService. Unread messages are read first, because their rows may state the facts,
        too.
        """
        await self._caught_up()
        asked = await self._asked_in(session) if session else ()
        if typed:
            asked = (*asked, ForgetRequest(self._clock.now(), typed))
        if said := await self._no_facts(fact_ids):
            await self._forgetting.begin(*said, also, asked)
            return await self._forgetting.carry_out()
        return await self._book.forget(fact_ids, also, asked)

    async def preview(self, fact_ids: Sequence[str]) -> ErasureReport:
        """See Facts."""
        if said := await self._no_facts(fact_ids):
            return await self._forgetting.preview(*said)
        return await self._book.preview(fact_ids)

    async def changes(self, limit: int) -> tuple[FactChange, ...]:
        """Return the newest `limit` changes, newest first."""
        return await self._book.changes(limit)

    async def undo(
        self, change: int | None = None, session: SessionKey | None = None
    ) -> FactChange:
        """Undo a change: the one of this number, else the newest that can be undone, of the session
        if given. Raises NotFound, InvalidRequest.
        """
        return await self._book.undo(change, session)

    async def merge(self, keep: str, others: Sequence[str]) -> FactChange:
        """Let the fact `keep` replace others that say the same. Raises NotFound, InvalidRequest."""
        return await self._book.merge(keep, others)

    async def pending(self) -> tuple[Fact, ...]:
        """Return the proposed facts, which wait for the owner's answer."""
        return tuple(f for f in await self._book.all() if f.status is FactStatus.PROPOSED)

    async def accept(self, fact_ids: Sequence[str]) -> tuple[OperationResult, ...]:
        """Make proposed facts active. Raises NotFound."""
        return await self._book.accept(fact_ids)

    async def reject(self, fact_ids: Sequence[str]) -> tuple[Fact, ...]:
        """Delete proposed facts. Raises NotFound."""
        return await self._book.reject(fact_ids)

    async def counts(self) -> dict[str, Any]:
        """Return `{active, proposed, refused: {reason: n}, waiting, merged}`: the numbers of facts,
        of operations refused since the start, of conversations waiting to be read, and of facts
        that the last daily review merged into others.
        """
        statuses = Counter(fact.status for fact in await self._book.all())
        refused = Counter(self._book.not_kept)
        if self._reader.withheld:
            refused[str(Refusal.CREDENTIAL)] += self._reader.withheld
        if self._reader.malformed:
            refused["malformed"] += self._reader.malformed
        return {
            "active": statuses[FactStatus.ACTIVE],
            "proposed": statuses[FactStatus.PROPOSED],
            "refused": dict(refused),
            "waiting": self._learner.waiting,
            "merged": merged_lately(await self._book.changes(LISTED), self._clock.now()),
        }

    async def _asked_in(self, session: SessionKey) -> tuple[ForgetRequest, ...]:
        """Return the owner's last message in the session, and the ones before it as long as they
        led to the same tool.
        """
        found: list[ForgetRequest] = []
        is_asked = True  # the current turn began with such a request
        for row in reversed(await self._sessions.recent(session, _REQUESTS)):
            is_asked = is_asked or any(
                isinstance(b, ToolUse) and b.name == _TOOL for b in row.blocks
            )
            if opens_turn(row):
                if not (is_asked and row.source.is_owners_own):
                    break
                found.append(ForgetRequest(row.at, row.text, session, row.seq))
                is_asked = False
        return tuple(found)

    async def _no_facts(
        self, ids: Sequence[str]
    ) -> tuple[tuple[Fact, ...], Mapping[str, Sequence[Evidence]]] | None:
        """Return the secrets with these ids and their evidence; None if an id is that of a fact."""
        known = {fact.id for fact in await self._book.all()}
        if not ids or any(i in known for i in ids):
            return None
        found = [one for one in await self._secrets() if one.fact.id in ids]
        facts = tuple(one.fact for one in found)
        return (facts, {one.fact.id: one.evidence for one in found}) if found else None

    async def _secrets(self) -> tuple[WithheldSecret, ...]:
        """Return the secrets that the owner has told in his own conversations."""
        found: list[WithheldSecret] = []
        for info in await self._sessions.sessions():
            if kind_of(info.key) is not SessionKind.OWNER:
                continue
            first = 1
            while rows := await self._sessions.rows(info.key, first, _PAGE):
                found += await asyncio.to_thread(_secrets_in, info.key, rows)
                first = rows[-1].seq + 1
        return withheld.without_repeats(found)

    async def _caught_up(self) -> bool:
        """Read all unread messages; return whether that succeeded in time."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._learner.catch_up()
        except (AgentdError, TimeoutError) as error:
            log.warning("facts_not_caught_up", reason=type(error).__name__)
            return False
        return True

    async def _find_saying(
        self, session: SessionKey, quote: str
    ) -> tuple[tuple[SpokenMessage, ...], Evidence] | None:
        """Return the message in which the user says the quote (without a quote his last message),
        after the agent's message before it, and the whole sentence as evidence. None if he has not
        said it.
        """
        rows = await self._sessions.recent(session, _TURNS)
        size = sum(len(row.text) for row in rows)
        return await offload(size, lambda: _saying_in(session, rows, quote))

    async def _verbatim(
        self,
        sentence: str,
        session: SessionKey,
        words: Evidence,
        category: Category | None = None,
    ) -> tuple[OperationResult, ...]:
        kept = FactOperation(
            OperationKind.ADD,
            words.at,
            FactSource.EXPLICIT,
            sentence,
            category or Category.PERSONAL,
            evidence=(words,),
        )
        return await self._book.learn([kept], session=session)

    async def _matching(self, query: str, *, every: bool) -> Matches:
        facts = await self._book.all()
        search = _all_saying if every else _match_words
        past = _past(facts)
        for among in (_holding(facts), tuple({comparable(f.text): f for f in past}.values())):
            sure = await asyncio.to_thread(search, query, among)
            sure = sure if every else sure[:_MOST]
            if sure:
                earlier = await self._earlier(query, sure)
                same = () if sure[0].is_active else _saying_the_same(sure, past)
                return Matches(sure, earlier=tuple(dict.fromkeys((*earlier, *same))))
        hits = await self._book.find(query, _MAYBE)
        return Matches(maybe=tuple(hit.fact for hit in hits))

    async def _earlier(self, query: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
        """Return the past facts that these have replaced and that contain every word of the query
        which these contain.
        """
        found: dict[str, Fact] = {}
        for fact in facts:
            wanted = _words_of_fact(_distinctive(query), fact)
            for old in await self._book.history(fact.id):
                if not old.is_active and old.is_alive and wanted == _words_of_fact(wanted, old):
                    found[old.id] = old
        return tuple(one for one in found.values() if one not in facts)


def _holding(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if fact.is_active)


def _saying_the_same(facts: Sequence[Fact], others: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the past facts with the same words as one of these: the query means all of them
    alike.
    """
    said = {comparable(fact.text) for fact in facts}
    return tuple(f for f in others if f not in facts and comparable(f.text) in said)


def _past(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Facts that are superseded or ended. They are considered only when no current fact matches the
    query.
    """
    return tuple(f for f in facts if f.status in (FactStatus.SUPERSEDED, FactStatus.ENDED))


def _secrets_in(session: SessionKey, rows: Sequence[Row]) -> list[WithheldSecret]:
    return list(withheld.secrets_told(session, rows))


def _saying_in(
    session: SessionKey, rows: Sequence[Row], quote: str
) -> tuple[tuple[SpokenMessage, ...], Evidence] | None:
    spoken = spoken_in(session, rows)
    for at in range(len(spoken) - 1, -1, -1):
        one = spoken[at]
        if not (one.is_user and one.is_clean):
            continue
        span = quotes.find(quote, one.text, one.quotations) if quote else (0, len(one.text))
        if span is None:
            continue
        start, end = quotes.sentence_around(one.text, span)
        before = spoken[at - 1 : at] if at and not spoken[at - 1].is_user else ()
        return (*before, one), Evidence(one.at, session, one.seq, start, end)
    return None


def _sentence(spoken: Sequence[SpokenMessage], asked: Evidence) -> str:
    """Return the words of the evidence; "" if some of them are quotation."""
    one = spoken[-1]
    if any(start < asked.end and asked.start < end for start, end in one.quotations):
        return ""
    return one.text[asked.start : asked.end]


def _match_ids(query: str, before: Sequence[Fact], now: Sequence[Fact]) -> Matches | None:
    """Return the facts with these ids; None if the query is not a list of ids. For a fact that
    recent messages have just replaced, its successor may be meant, too.
    """
    alive = {fact.id: fact for fact in now if fact.is_alive}
    named = [alive.get(word) for word in query.split()]
    facts = tuple(fact for fact in named if fact is not None)
    if not facts or len(facts) != len(named):
        return None
    held = {fact.id for fact in before if fact.is_active}
    overtaken = [fact for fact in facts if fact.id in held and not fact.is_active]
    if not overtaken:
        return Matches(facts)
    instead = (alive.get(fact.superseded_by) for fact in overtaken)
    return Matches(maybe=tuple({f.id: f for f in (*facts, *instead) if f is not None}.values()))


def _all_saying(query: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts with every word of the query that any fact has; none if the query names
    something that no fact names. “The user's …” counts only if the query has nothing else.
    """
    asked = _distinctive(query) or frozenset(_WORD.findall(fold_text(query)))
    held = {fact.id: _words_of_fact(asked, fact) for fact in facts}
    union = frozenset(word for words in held.values() for word in words)
    if not union or not _names(query) <= union:
        return ()
    return tuple(fact for fact in facts if held[fact.id] == union)


def _match_words(query: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts with exactly the words of the query, or else those that match best."""
    wanted = comparable(query)
    longest = max(_WORD.findall(wanted), key=len, default="")  # few facts have it: a cheap test
    few = (fact for fact in facts if longest in fold_text(fact.text))
    return tuple(f for f in few if comparable(f.text) == wanted) or _saying(query, facts)


def _saying(query: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts with the most words of the query, if these are all its words that any fact
    has and at least one is rare. None if different facts have different words of it, or if it names
    something that no fact names.
    """
    asked = _distinctive(query)
    held = {fact.id: _words_of_fact(asked, fact) for fact in facts}
    counts = Counter(word for words in held.values() for word in words)
    union = frozenset(counts)
    if not _names(query) <= union:
        return ()
    rare = {word for word, count in counts.items() if count <= max(2, len(facts) // 10)}
    return tuple(f for f in facts if held[f.id] == union and union & rare)


def _distinctive(query: str) -> frozenset[str]:
    """Return the words of a query that can distinguish facts."""
    return frozenset(filter(_tells, _WORD.findall(fold_text(query))))


def _words_of_fact(asked: frozenset[str], fact: Fact) -> frozenset[str]:
    """Return those of the words that the fact contains, ignoring endings."""
    own = frozenset(_WORD.findall(fold_text(fact.text)))
    return frozenset(w for w in asked if any(_is_form(w, one) for one in own))


def _tells(word: str) -> bool:
    """Whether a word can distinguish facts: not “The user's …”, “is” and the like."""
    is_short = len(word) < _TELLING and word.isalpha() and not _UNSPACED.match(word)
    return not is_short and word not in _FRAME


def _names(text: str) -> frozenset[str]:
    words = (one for name in names_in(text) for one in _WORD.findall(fold_text(name)))
    return frozenset(filter(_tells, words))


def _is_form(word: str, other: str) -> bool:
    """Whether two words are equal, or differ only in a short ending."""
    if word == other:
        return True
    short, long = sorted((word, other), key=len)
    return len(short) >= _STEM and len(long) - len(short) <= _ENDING and long.startswith(short)
