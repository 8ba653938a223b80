"""Facts in memory: their rows, and what finds them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from agentd.domain.erasure import Needles
from agentd.domain.fact import (
    Fact,
    FactHit,
    FactStatus,
    Neighbour,
    Provenance,
    Sighting,
)
from agentd.domain.turn import SessionKey


class MemoryFactStore:
    """A FactStore in memory."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}
        self._marks: dict[SessionKey, int] = {}
        self._sightings: list[Sighting] = []
        self._graves: set[bytes] = set()
        self._parked: tuple[str, ...] = ()
        self._answers: dict[str, bool] = {}
        self._vectors: dict[tuple[str, str], bytes] = {}
        self._erasures: dict[int, Needles] = {}
        self._numbers = 0

    async def facts(self) -> tuple[Fact, ...]:
        return tuple(sorted(self._facts.values(), key=lambda fact: (fact.noted_at, fact.id)))

    async def save(
        self,
        facts: Sequence[Fact],
        *,
        marks: Mapping[SessionKey, int] | None = None,
        sightings: Sequence[Sighting] = (),
    ) -> None:
        for fact in facts:
            self._put(fact)
        for session, seq in (marks or {}).items():
            self._marks[session] = max(seq, self._marks.get(session, 0))
        self._sightings += [s for s in dict.fromkeys(sightings) if s not in self._sightings]

    async def rebuild(self, facts: Sequence[Fact]) -> None:
        for fact_id in self._facts.keys() - {fact.id for fact in facts}:
            self._drop_vectors(fact_id)
            del self._facts[fact_id]
        for fact in facts:
            self._put(fact)

    async def marks(self) -> Mapping[SessionKey, int]:
        return dict(self._marks)

    async def sightings(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Sighting]]:
        by_time = sorted(self._sightings, key=lambda sighting: sighting.at)
        return {i: [s for s in by_time if s.fact_id == i] for i in fact_ids}

    async def bury(self, fact_ids: Sequence[str], digests: Sequence[bytes], at: datetime) -> None:
        for fact_id in fact_ids:
            if fact_id in self._facts:
                self._facts[fact_id] = Fact.grave(fact_id, at)
            self._drop_vectors(fact_id)
        self._sightings = [s for s in self._sightings if s.fact_id not in fact_ids]
        self._graves.update(digests)

    async def buried(self) -> frozenset[bytes]:
        return frozenset(self._graves)

    async def unbury(self, digests: Sequence[bytes]) -> None:
        self._graves.difference_update(digests)

    async def park(self, fact_ids: Sequence[str]) -> None:
        self._parked = tuple(fact_ids)

    async def parked(self) -> tuple[str, ...]:
        return self._parked

    async def answer(self, fact_id: str, at: datetime, *, accepted: bool) -> None:
        self._answers[fact_id] = accepted

    async def answered(self) -> Mapping[str, bool]:
        return dict(self._answers)

    async def vectors(self, model: str) -> Mapping[str, bytes]:
        return {i: vector for (i, name), vector in self._vectors.items() if name == model}

    async def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        for fact_id, vector in vectors.items():
            fact = self._facts.get(fact_id)
            if fact is not None and fact.status is not FactStatus.FORGOTTEN:
                self._vectors[fact_id, model] = vector

    async def begin_erasure(self, needles: Needles) -> int:
        for number, known in self._erasures.items():
            if known == needles:
                return number
        self._numbers += 1
        self._erasures[self._numbers] = needles
        return self._numbers

    async def erasures(self) -> Mapping[int, Needles]:
        return dict(self._erasures)

    async def end_erasure(self, number: int) -> None:
        self._erasures.pop(number, None)

    def unlink(self, session: SessionKey) -> None:
        """As deleting the session does it."""
        for fact in [fact for fact in self._facts.values() if fact.origin.session == session]:
            self._facts[fact.id] = replace(fact, origin=Provenance())
        unlinked = (
            replace(s, origin=Provenance()) if s.origin.session == session else s
            for s in self._sightings
        )
        self._sightings = list(dict.fromkeys(unlinked))
        self._marks.pop(session, None)

    def _put(self, fact: Fact) -> None:
        known = self._facts.get(fact.id)
        if known is not None and known.text != fact.text:
            self._drop_vectors(fact.id)
        self._facts[fact.id] = fact

    def _drop_vectors(self, fact_id: str) -> None:
        for key in [key for key in self._vectors if key[0] == fact_id]:
            del self._vectors[key]


class FactIndexDouble:
    """A FactIndex that counts words; `cosines` says how near two texts are, none being 0."""

    def __init__(self, cosines: Mapping[frozenset[str], float] | None = None) -> None:
        self.facts: dict[str, Fact] = {}
        self.model = ""
        self._cosines = {} if cosines is None else cosines

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

    async def near(self, text: str, floor: float, limit: int) -> Sequence[Neighbour]:
        found = [
            Neighbour(fact, cosine)
            for fact in self.facts.values()
            if (cosine := self._cosines.get(frozenset((text, fact.text)), 0.0)) >= floor
        ]
        return sorted(found, key=lambda one: -one.cosine)[:limit]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
