"""Puts facts into the prompts of the owner's own turns.

While all active facts fit the budget, the system prompt contains every one of them, as a snapshot
that stays the same from turn to turn, so that the service's cache stays valid; changes since then
come before the user's words. With more facts, the facts relevant to the message come there, and
facts linked to them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog
from msgspec import Struct

from agentd.core.event import NoticeGiven, TurnEnded, TurnEvent
from agentd.core.fact import Fact, FactHit
from agentd.core.ports import Clock, FactIndex, Facts
from agentd.core.prompt import ContextBlock, Rank
from agentd.core.turn import Origin, PromptScope, SessionKey, SessionKind, TurnRequest
from agentd.engine import tokens
from agentd.engine.rendering import fence
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.facts.links import FactChain, FactLinks
from agentd.memory.facts.wire import day, fact_line, in_line

log = structlog.get_logger()


ALL_HEADING = "## What is known about the user"
CHANGED_HEADING = "## Changes to what is known about the user"
RELEVANT_HEADING = "## Relevant Memories"
SOURCE = "agentd, facts the user told"

IDLE = 300.0  # seconds after which services keep no cache
SESSIONS = 256  # sessions whose snapshots are remembered
USUAL_TOKENS = 1_000  # budget of a block if the settings allow no snapshot
TEXT_CHARS = 4_000  # characters of a message that facts are searched with
LINE_BYTES = 512  # longest line of a relevant fact

SECONDS = 0.5  # seconds that a turn waits for a search
FIRST_SECONDS = 5.0  # seconds it waits for the facts, and for the first search
MANY = 1_000  # changed facts from which links are rebuilt in a thread
SPREAD = 0.35  # how far a hit's relation may be below the best
ROOM = 14  # facts at most in one block
LINKED = 8  # of them, facts linked to the hits
LEAST = 0.5  # a way that scores less than this share of the best one is left out
CHANGED = 0.5  # share of the budget that changes may take before a new snapshot

_COMPACTION = "compaction"  # tag of notices that a context was compacted or emptied


class _Snapshot(Struct):
    """The facts in a session's system prompt. `facts` is None if all of them would be too many."""

    text: str
    facts: Mapping[str, Fact] | None
    last: float  # when it was last used, monotonic
    changes: str = ""  # the changes since the snapshot, as of the last turn


class FactsInPrompt:
    """A ContextSource for facts, and an EventSink that notices the end of turns and compactions.
    `framing` explains the lines to the model.
    """

    def __init__(
        self,
        facts: Facts,
        index: FactIndex,
        clock: Clock,
        framing: str,
        settings: FactsSettings,
    ) -> None:
        self._facts = facts
        self._index = index
        self._clock = clock
        self._framing = framing.strip()
        self._budget = settings.prompt_tokens
        self._most = settings.max_results
        self._sessions: OrderedDict[SessionKey, _Snapshot] = OrderedDict()
        self._seen: tuple[Fact, ...] | None = None
        self._known: dict[str, Fact] = {}  # all facts by id, forgotten ones included
        self._links = FactLinks()
        self._linked: Mapping[str, Fact] = {}  # the facts that the links were built from
        self._patience = FIRST_SECONDS

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        """Return the facts as a stable block and their changes as a volatile one; or a volatile
        block of the relevant facts. None for turns that are not the owner's own.
        """
        if request.kind is not SessionKind.OWNER or request.origin is not Origin.USER:
            return ()
        if request.context is PromptScope.LIGHT:
            return ()
        await self._read()
        now = self._clock.now()
        session = self._current_snapshot(request.session, now)
        if session.facts is None:
            text = await self._relevant(request.text, now)
            return (ContextBlock(text, stable=False),) if text else ()
        blocks = [ContextBlock(session.text, rank=Rank.FACTS)] if session.text else []
        if session.changes:
            blocks.append(ContextBlock(session.changes, stable=False))
        return tuple(blocks)

    def emit(self, event: TurnEvent) -> None:
        """Note turns that ended, and drop the snapshot of a compacted session."""
        if isinstance(event, TurnEnded) and event.session in self._sessions:
            self._sessions[event.session].last = self._clock.monotonic()
        elif isinstance(event, NoticeGiven) and event.tag == _COMPACTION:
            self.renew(event.session)

    def renew(self, session: SessionKey) -> None:
        """Give the session's next turn a new snapshot. Also to be called when a session is
        deleted.
        """
        self._sessions.pop(session, None)

    async def _read(self) -> None:
        """Read the facts if they have changed."""
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                facts = await self._facts.all()
        except Exception:
            # An error in facts must not keep the user from an answer.
            log.exception("facts_not_read")
            return
        if facts is not self._seen:
            self._seen = facts
            self._known = {fact.id: fact for fact in facts}

    def _current_snapshot(self, key: SessionKey, now: datetime) -> _Snapshot:
        """Return the session's snapshot, renewed if necessary."""
        found = self._sessions.pop(key, None)
        at = self._clock.monotonic()
        if found is not None and found.facts is not None:
            found.changes = self._changes(found, now)
        if found is None or at - found.last >= IDLE or self._is_stale(found):
            found = self._snapshot(now)  # a new snapshot has no changes
        found.last = at
        self._sessions[key] = found
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return found

    def _snapshot(self, now: datetime) -> _Snapshot:
        facts: dict[str, Fact] = {}
        lines: list[str] = []
        size = 0
        for fact in self._holding(now):
            facts[fact.id] = fact
            lines.append(self._line(fact))
            size += tokens.of_text(lines[-1]) - 1
            if size > self._budget:
                return _Snapshot("", None, 0.0)
        text = _block(ALL_HEADING, self._framing, lines) if lines else ""
        fits = self._budget and tokens.of_text(text) <= self._budget
        return _Snapshot(text, facts, 0.0) if fits else _Snapshot("", None, 0.0)

    def _is_stale(self, session: _Snapshot) -> bool:
        """Whether a fact of the snapshot was forgotten, or so much has changed that repeating the
        changes with each message costs more than a new snapshot.
        """
        if session.facts is None:
            return False
        known = (self._known.get(fact_id) for fact_id in session.facts)
        if any(fact is not None and not fact.is_alive for fact in known):
            return True
        return tokens.of_text(session.changes) > self._budget * CHANGED

    def _changes(self, session: _Snapshot, now: datetime) -> str:
        """Return the changes since the session's snapshot as text; "" if there are none."""
        before = session.facts or {}
        lines: list[str] = []
        replacing: set[str] = set()
        for fact_id in before:
            fact = self._known.get(fact_id)
            if fact is not None and _holds(fact, now):
                continue
            new = self._instead(fact, now)
            is_told = new is not None and new.id in replacing
            lines.append(self._gone_line(fact_id, fact, new, is_told=is_told))
            if new is not None:
                replacing.add(new.id)
        for fact in self._holding(now):
            is_news = fact.id not in before or before[fact.id].text != fact.text
            if is_news and fact.id not in replacing:
                lines.append(self._line(fact))
        framing = "" if session.text else self._framing  # the system prompt has it already
        return _block(CHANGED_HEADING, framing, lines) if lines else ""

    def _line(self, fact: Fact) -> str:
        return f"- {fact_line(fact, self._clock.zone)}"

    def _gone_line(
        self, fact_id: str, fact: Fact | None, new: Fact | None, *, is_told: bool
    ) -> str:
        """Return the line that says that a fact no longer holds, and which one does."""
        zone = self._clock.zone
        if new is not None:
            words = "" if is_told else f" {in_line(new.text)}"
            since = day(new.valid_from, zone)
            return f"- [{fact_id}] no longer holds; since {since}: [{new.id}]{words}"
        ended = fact.valid_to if fact is not None else None
        return f"- [{fact_id}] no longer holds{f' since {day(ended, zone)}' if ended else ''}."

    def _instead(self, fact: Fact | None, now: datetime) -> Fact | None:
        """Return the current fact that replaced this one."""
        passed: set[str] = set()
        while fact is not None and fact.superseded_by and fact.id not in passed:
            passed.add(fact.id)
            fact = self._known.get(fact.superseded_by)
        return fact if fact is not None and passed and _holds(fact, now) else None

    def _holding(self, now: datetime) -> list[Fact]:
        """Return the facts that hold, oldest first."""
        found = [fact for fact in self._known.values() if _holds(fact, now)]
        return sorted(found, key=lambda fact: (fact.noted_at, fact.id))

    async def _relevant(self, message: str, now: datetime) -> str:
        """Return the facts relevant to a message, and facts linked to them, as text; "" if there
        are none.
        """
        message = _ends_of(message.strip())
        if not message:
            return ""
        hits = [hit.fact for hit in await self._hits(message) if _holds(hit.fact, now)]
        links = await self._current_links()
        named = [fact for fact in links.named(message) if _holds(fact, now)]
        near = await self._cosines(message, [fact.id for fact in links.around((*named, *hits))])
        best = hits[: ROOM - LINKED]
        linked = _linked_facts(best, links.ways(message, hits, named, near))
        found = {fact.id: fact for fact in (*best, *linked, *hits)}
        lines: list[str] = []
        text = ""
        for fact in list(found.values())[:ROOM]:
            if _holds(fact, now):
                lines.append(_clip(self._line(fact), LINE_BYTES))
                longer = _block(RELEVANT_HEADING, self._framing, lines)
                if tokens.of_text(longer) > (self._budget or USUAL_TOKENS):
                    break
                text = longer
        return text

    async def _hits(self, text: str) -> Sequence[FactHit]:
        """Return the relevant facts that the index finds; empty if it takes too long."""
        patience, self._patience = self._patience, SECONDS
        found: Sequence[FactHit] = ()
        try:
            async with asyncio.timeout(patience):
                found = await self._index.find(text, 2 * self._most)
        except TimeoutError:
            log.info("facts_too_late", seconds=patience)
        except Exception:
            # As above, the turn goes on.
            log.exception("facts_not_found")
        least = max([0.0, *(_relation(hit) - SPREAD for hit in found)])
        return [hit for hit in found if _relation(hit) >= least][: self._most]

    async def _cosines(self, text: str, fact_ids: Sequence[str]) -> Mapping[str, float]:
        try:
            async with asyncio.timeout(SECONDS):
                return await self._index.cosines(text, fact_ids)
        except TimeoutError:
            log.info("facts_not_compared", seconds=SECONDS)
        except Exception:
            # As above; words alone decide.
            log.exception("facts_not_compared")
        return {}

    async def _current_links(self) -> FactLinks:
        """Return the links between the present facts."""
        if self._linked is self._known:
            return self._links
        known, before = self._known, self._linked
        changed = [fact for fact in known.values() if before.get(fact.id) is not fact]
        gone = before.keys() - known.keys()
        if len(changed) + len(gone) > MANY:
            links = await asyncio.to_thread(FactLinks, [f for f in known.values() if f.is_active])
        else:
            links = self._links
            for fact_id in (*gone, *(fact.id for fact in changed)):
                links.remove(fact_id)
            for fact in changed:
                if fact.is_active:
                    links.put(fact)
        self._links, self._linked = links, known
        return links


def _linked_facts(hits: Sequence[Fact], ways: Sequence[FactChain]) -> list[Fact]:
    """Return the facts of the best ways, as many as fit beside the hits."""
    known = {fact.id for fact in hits}
    found: dict[str, Fact] = {}
    for way in ways:
        if way.score < LEAST * ways[0].score:
            break
        new = {fact.id: fact for fact in way.facts if fact.id not in known}
        if len(found | new) <= LINKED:
            found |= new
    return list(found.values())


def _ends_of(text: str) -> str:
    """Return a long text's beginning and end, which usually tell what it is about."""
    half = TEXT_CHARS // 2
    return text if len(text) <= TEXT_CHARS else f"{text[:half]}\n{text[-half:]}"


def _holds(fact: Fact, now: datetime) -> bool:
    return fact.is_active and (fact.valid_to is None or fact.valid_to > now)


def _relation(hit: FactHit) -> float:
    """Return the relation of a hit: negative if the fact relates too little to the text, 0 if not
    given.
    """
    return hit.scores.get("relation", 0.0)


def _block(heading: str, framing: str, lines: Sequence[str]) -> str:
    return "\n".join(filter(None, (heading, framing, fence(SOURCE, "\n".join(lines)))))


def _clip(text: str, most_bytes: int) -> str:
    """Return the text, or its beginning if it exceeds `most_bytes` in UTF-8, cut between
    characters.
    """
    data = text.encode(errors="replace")
    if len(data) <= most_bytes:
        return text
    return data[: most_bytes - len("…".encode())].decode(errors="ignore") + "…"
