"""Facts without a file and without a judge, for tests of those who ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentd.domain.fact import ErasureReport, Fact, FactHit, FactStatus, Learned, Refusal, Statement
from agentd.domain.turn import SessionKey
from agentd.errors import NotFound
from agentd.ports import Clock


class MemoryFacts:
    """Port Facts in memory: a text twice is one fact, finding is by any shared word."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._facts: dict[str, Fact] = {}
        self.learned: list[Statement] = []
        self.reason: Refusal | None = None  # when set, what is learned is refused with it

    async def learn(
        self, statements: Sequence[Statement], *, marks: Mapping[SessionKey, int] | None = None
    ) -> tuple[Learned, ...]:
        """Take statements in."""
        return tuple(self._take(statement) for statement in statements)

    async def all(self) -> tuple[Fact, ...]:
        """Every fact."""
        return tuple(self._facts.values())

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """Those that share a word with the query."""
        wanted = set(query.casefold().split())
        found = [f for f in self._facts.values() if f.is_active and wanted & set(f.text.split())]
        return [FactHit(fact, 1.0, {}) for fact in found[:limit]]

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """The fact alone. Raises NotFound."""
        return (self._get(fact_id),)

    async def forget(self, fact_ids: Sequence[str]) -> ErasureReport:
        """Blank facts. Raises NotFound."""
        for fact in [self._get(fact_id) for fact_id in fact_ids]:
            self._facts[fact.id] = replace(fact, text="", status=FactStatus.FORGOTTEN, triple=None)
        return ErasureReport({"facts": len(fact_ids)}, kept=("memory/diary.md:3",))

    def _get(self, fact_id: str) -> Fact:
        fact = self._facts.get(fact_id)
        if fact is None or fact.status is FactStatus.FORGOTTEN:
            raise NotFound(f"there is no fact {fact_id}", cure="agentd facts list")
        return fact

    def _take(self, statement: Statement) -> Learned:
        self.learned.append(statement)
        if self.reason:
            return Learned(None, reason=self.reason)
        for fact in self._facts.values():
            if fact.is_active and fact.text.casefold() == statement.text.casefold():
                return Learned(fact)
        fact = Fact(
            f"fact{len(self._facts) + 1:04}",
            statement.text,
            statement.category,
            statement.source,
            statement.source.confidence if statement.confidence is None else statement.confidence,
            statement.at,
            self._clock.now(),
            origin=statement.origin,
            triple=statement.triple,
        )
        self._facts[fact.id] = fact
        return Learned(fact, is_new=True)
