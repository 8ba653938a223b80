"""What the owner asks of his facts in words: by a tool, a slash command or the command line."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

import structlog

from agentd.domain.fact import (
    NO_SESSION,
    Category,
    ErasureReport,
    Fact,
    FactSource,
    Learned,
    Matches,
    Provenance,
    Statement,
)
from agentd.domain.turn import SessionKey
from agentd.errors import AgentdError, Busy
from agentd.facts.asked import explicit_besides, explicit_statement
from agentd.ports import Clock, Facts
from agentd.statements.choosing import places, says_only
from agentd.statements.claims import USER, claims
from agentd.statements.explicit import Request, requested
from agentd.statements.normal import normalised
from agentd.statements.relations import canonical
from agentd.statements.telling import share_said, telling_words

_MOST = 20
_MAYBE = 5
_SAID = 0.75  # of a sentence's telling words: the rest is how a model words it
_OWN = re.compile(r"(?:my|our|user's|mein(?:e[nrms]?)?|unser(?:e[nrms]?)?) ")

Said = Callable[[SessionKey], Awaitable[Sequence[tuple[int, str]]]]
CatchUp = Callable[[str], Awaitable[None]]

log = structlog.get_logger()


class Desk:
    """Answers as port FactDesk says. `said` gives the owner's last words in a session, the newest
    last, each with the number of its row; `catch_up` has read what he said of some words and nobody
    has drawn facts from yet.
    """

    def __init__(
        self, facts: Facts, said: Said, clock: Clock, catch_up: CatchUp | None = None
    ) -> None:
        self._facts = facts
        self._said = said
        self._clock = clock
        self._catch_up = catch_up

    async def remember(
        self, text: str, *, session: SessionKey = NO_SESSION, category: Category | None = None
    ) -> Learned:
        """Keep it as an explicit fact, from the row that says it if there is one."""
        now = self._clock.now()
        today = now.astimezone(self._clock.zone).date()
        asked = requested(text)
        bare = asked.text if asked is not None and asked.kind == "remember" else text
        origin = await self._origin(bare, session)
        statement = explicit_statement(bare, now, today, origin, category)
        besides = explicit_besides(bare, now, today, origin)
        return _together(await self._facts.learn([*besides, statement]), besides)

    async def matching(self, query: str) -> Matches:
        """Sure are the fact of that id, facts with that very sentence or that subject and value, or
        else all that say every telling word of the query, or else those that “my” and a relation names:
        “my employer”. What was said of it a moment ago is made facts first; raises Busy if that fails
        and no fact is known.
        """
        asked = requested(query) or requested(f"forget {query}")  # “what I told you about Rex”
        bare = asked.text if asked is not None and asked.kind == "forget" else query
        is_level = await self._is_level(bare)
        matches = await self._known(query, bare)
        if not is_level and not (matches.sure or matches.maybe):
            raise Busy(
                "what you said of this could not be read for facts yet",
                cure="ask again in a few minutes; `agentd status` says what is wrong",
            )
        return matches

    async def forget(self, fact_ids: Sequence[str]) -> ErasureReport:
        """Erase facts, everywhere. Raises NotFound."""
        return await self._facts.forget(fact_ids)

    async def was_said(self, text: str, session: SessionKey) -> bool:
        """Whether one of the owner's last messages has nearly all telling words of the text."""
        return any(share_said(text, said) >= _SAID for _, said in await self._said(session))

    async def asked_last(self, session: SessionKey) -> Request | None:
        """See FactDesk."""
        said = await self._said(session)
        return requested(said[-1][1]) if said else None

    async def was_asked_to_forget(self, session: SessionKey, fact: Fact | None = None) -> bool:
        """Whether his last message begins with such a request, or the one before does and the last
        one says which: a number of a list, the fact's id, or words of it.
        """
        said = [text for _, text in (await self._said(session))[-2:]]
        if said and _asks(said[-1]):
            return True
        return fact is not None and len(said) > 1 and _asks(said[0]) and _chooses(said[1], fact)

    async def _is_level(self, words: str) -> bool:
        """Whether all that was said of this has been read."""
        if self._catch_up is None:
            return True
        try:
            await self._catch_up(words)
        except (AgentdError, TimeoutError) as error:
            log.warning("facts_not_caught_up", reason=type(error).__name__)
            return False
        return True

    async def _known(self, query: str, bare: str) -> Matches:
        active = [fact for fact in await self._facts.all() if fact.is_active]
        for fact in active:
            if fact.id == query.strip():
                return Matches((fact,))
        if same := _same(bare, active):
            return Matches(same)
        if saying := _saying(bare, active) or _called(bare, active):
            return Matches(saying[:_MOST])
        hits = await self._facts.find(bare, _MAYBE)
        return Matches(maybe=tuple(hit.fact for hit in hits))

    async def _origin(self, text: str, session: SessionKey) -> Provenance:
        if session == NO_SESSION:
            return Provenance()
        for seq, said in reversed(await self._said(session)):
            if share_said(text, said) >= _SAID:
                return Provenance(session, seq)
        return Provenance(session)


def _together(learned: Sequence[Learned], besides: Sequence[Statement]) -> Learned:
    """The last one, with those before it that were asked for as well: neither names in passing nor what
    holds no longer.
    """
    last = learned[-1]
    also = [
        one
        for one, said in zip(learned, besides, strict=False)
        if one.fact and said.source is FactSource.EXPLICIT and not _denies(said)
    ]
    if last.fact is None or not also:
        return last
    superseded = (fact for one in (*also, last) for fact in one.superseded)
    return Learned(
        last.fact,
        last.is_new or any(one.is_new for one in also),
        tuple(superseded),
        before=tuple(one.fact for one in also if one.fact),
    )


def _denies(said: Statement) -> bool:
    return said.triple is not None and canonical(said.triple.relation)[1]


def _asks(said: str) -> bool:
    asked = requested(said)
    return asked is not None and asked.kind == "forget"


def _chooses(said: str, fact: Fact) -> bool:
    return said.strip() == fact.id or bool(places(said, _MOST)) or says_only(said, fact.text)


def _same(text: str, active: Sequence[Fact]) -> tuple[Fact, ...]:
    read = claims(text)
    wanted = {normalised(text), *(normalised(claim.text) for claim in read)}
    triples = {claim.triple for claim in read if claim.triple is not None}
    return tuple(f for f in active if normalised(f.text) in wanted or f.triple in triples)


def _saying(text: str, active: Sequence[Fact]) -> tuple[Fact, ...]:
    if not telling_words(text):
        return ()
    return tuple(fact for fact in active if share_said(text, fact.text) == 1.0)


def _called(text: str, active: Sequence[Fact]) -> tuple[Fact, ...]:
    words = normalised(text)
    own = _OWN.match(words)
    if own is None:
        return ()
    relation = canonical(words[own.end() :])
    told = ((fact, fact.triple) for fact in active)
    return tuple(
        f for f, t in told if t and t.subject == USER and canonical(t.relation) == relation
    )
