"""Doubles of the index of facts and of the service that the owner asks of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agentd.core.errors import NotFound
from agentd.core.fact import (
    NO_SESSION,
    Category,
    ErasureReport,
    Fact,
    FactHit,
    FactSource,
    Matches,
    OperationResult,
)
from agentd.core.ports import Clock
from agentd.core.turn import SessionKey


class FactIndexDouble:
    """A FactIndex that counts common words. `near` has, by the id of a fact, the cosine that
    `cosines` returns for any query.
    """

    def __init__(self, near: Mapping[str, float] | None = None) -> None:
        self.facts: dict[str, Fact] = {}
        self._near = {} if near is None else near

    async def put(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if fact.is_active:
                self.facts[fact.id] = fact
            else:
                self.facts.pop(fact.id, None)

    async def remove(self, fact_ids: Sequence[str]) -> None:
        for fact_id in fact_ids:
            self.facts.pop(fact_id, None)

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        wanted = _words(query)
        counted = ((len(wanted & _words(fact.text)), fact) for fact in self.facts.values())
        hits = [FactHit(fact, float(count), {"keyword": count}) for count, fact in counted if count]
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        hits = [hit.fact for hit in await self.find(text, limit)]
        others = (fact for fact in self.facts.values() if fact not in hits)
        return [*hits, *others][:limit]

    async def cosines(self, query: str, fact_ids: Sequence[str]) -> Mapping[str, float]:
        return {i: self._near[i] for i in fact_ids if i in self._near}


class FactServiceDouble:
    """A FactService in memory. Each text becomes one fact; only texts in `said` can be quoted, and
    nothing is learnt from texts in `asked`.
    """

    def __init__(self, clock: Clock, said: Sequence[str] = ()) -> None:
        self._clock = clock
        self.said = list(said)
        self.asked: set[str] = set()
        self.facts: dict[str, Fact] = {}
        self.forgotten: list[tuple[tuple[str, ...], tuple[int, ...]]] = []
        self.report = ErasureReport({"transcripts": 1})

    async def remember(
        self, text: str, session: SessionKey, quote: str = "", replaces: Sequence[str] = ()
    ) -> tuple[OperationResult, ...]:
        sentence = self._sentence(quote)
        if text in self.asked or not sentence:
            return ()
        gone = tuple(self.facts.pop(i) for i in replaces if i in self.facts)
        return (replace(self._kept(sentence), gone=gone),)

    async def remember_alone(self, session: SessionKey, quote: str) -> tuple[OperationResult, ...]:
        sentence = self._sentence(quote)
        return (self._kept(sentence),) if sentence else ()

    async def keep(
        self, text: str, session: SessionKey = NO_SESSION, category: Category | None = None
    ) -> tuple[OperationResult, ...]:
        return (self._kept(text, category or Category.PERSONAL),)

    async def keep_verbatim(
        self, sentence: str, session: SessionKey
    ) -> tuple[OperationResult, ...]:
        return (self._kept(sentence),)

    async def matching(self, query: str, *, every: bool = False) -> Matches:
        if query in self.facts:
            return Matches((self.facts[query],))
        wanted = _words(query)
        found = tuple(f for f in self.facts.values() if wanted <= _words(f.text))
        near = tuple(f for f in self.facts.values() if wanted & _words(f.text))
        return Matches(found) if found else Matches(maybe=near)

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        session: SessionKey = NO_SESSION,
        typed: str = "",
    ) -> ErasureReport:
        for fact_id in fact_ids:
            if self.facts.pop(fact_id, None) is None:
                raise NotFound(f"there is no fact {fact_id}", cure="agentd facts list")
        self.forgotten.append((tuple(fact_ids), tuple(also)))
        return self.report

    def _sentence(self, quote: str) -> str:
        return next((one for one in reversed(self.said) if quote in one), "")

    def _kept(self, text: str, category: Category = Category.PERSONAL) -> OperationResult:
        for fact in self.facts.values():
            if fact.text.casefold() == text.casefold():
                return OperationResult(fact)
        now = self._clock.now()
        explicit = FactSource.EXPLICIT
        name = f"fct{len(self.facts) + 1}"
        fact = Fact(name, text, category, explicit, explicit.confidence, now, now)
        self.facts[name] = fact
        return OperationResult(fact, is_new=True)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
