"""Facts in memory: their rows, what finds them, and what the owner asks of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from agentd.domain.fact import (
    NO_SESSION,
    Category,
    ErasureReport,
    Evidence,
    Fact,
    FactChange,
    FactHit,
    FactSource,
    FactWrite,
    Learned,
    Matches,
    Neighbour,
)
from agentd.domain.turn import SessionKey
from agentd.errors import NotFound
from agentd.ports import Clock


class MemoryFactStore:
    """A FactStore, FactVectorStore and ProposalStore in memory."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}
        self._evidence: list[Evidence] = []
        self._changes: list[FactChange] = []
        self._marks: dict[SessionKey, int] = {}
        self._graves: dict[bytes, datetime] = {}
        self._parked: tuple[str, ...] = ()
        self._answers: dict[str, bool] = {}
        self._vectors: dict[tuple[str, str], bytes] = {}

    async def facts(self) -> tuple[Fact, ...]:
        return tuple(sorted(self._facts.values(), key=lambda fact: (fact.noted_at, fact.id)))

    async def write(self, write: FactWrite) -> tuple[FactChange, ...]:
        for fact in write.facts:
            self._put(fact)
        for fact_id in write.removed:
            self._facts.pop(fact_id, None)
            self._drop(fact_id)
        for one in write.evidence:
            self._note(one)
        for session, seq in write.marks.items():
            self._marks[session] = max(seq, self._marks.get(session, 0))
        self._changes = [
            replace(one, undone=True) if one.id in write.undone else one for one in self._changes
        ]
        for digest in write.unburied:
            self._graves.pop(digest, None)
        if write.parked is not None:
            self._parked = write.parked
        first = len(self._changes) + 1
        new = [replace(one, id=first + at) for at, one in enumerate(write.changes)]
        self._changes += new
        return tuple(new)

    async def rebuild(self, facts: Sequence[Fact]) -> None:
        for fact_id in self._facts.keys() - {fact.id for fact in facts}:
            self._drop_vectors(fact_id)
            del self._facts[fact_id]
        for fact in facts:
            self._put(fact)

    async def evidence(self, fact_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        in_order = sorted(self._evidence, key=lambda one: one.at)
        return {i: [one for one in in_order if one.fact_id == i] for i in fact_ids}

    async def changes(self, limit: int) -> tuple[FactChange, ...]:
        return tuple(reversed(self._changes[-limit:]))

    async def marks(self) -> Mapping[SessionKey, int]:
        return dict(self._marks)

    async def bury(self, fact_ids: Sequence[str], digests: Sequence[bytes], at: datetime) -> None:
        for fact_id in fact_ids:
            if fact_id in self._facts:
                self._facts[fact_id] = Fact.grave(fact_id, at)
            self._drop(fact_id)
        self._graves.update(dict.fromkeys(digests, at))

    async def buried(self) -> Mapping[bytes, datetime]:
        return dict(self._graves)

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
            if fact is not None and fact.is_alive:
                self._vectors[fact_id, model] = vector

    def _put(self, fact: Fact) -> None:
        before = self._facts.get(fact.id)
        if before is not None and before.text != fact.text:
            self._drop_vectors(fact.id)
        self._facts[fact.id] = fact

    def _note(self, one: Evidence) -> None:
        def is_replaced(other: Evidence) -> bool:
            same_row = (other.fact_id, other.origin) == (one.fact_id, one.origin)
            return bool(one.end and not other.end and other.session and same_row)

        kept = [other for other in self._evidence if not is_replaced(other)]
        self._evidence = kept if one in kept else [*kept, one]

    def _drop(self, fact_id: str) -> None:
        self._evidence = [one for one in self._evidence if one.fact_id != fact_id]
        self._drop_vectors(fact_id)

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

    async def nearest(self, text: str, limit: int) -> Sequence[Fact]:
        hits = [hit.fact for hit in await self.find(text, limit)]
        others = (fact for fact in self.facts.values() if fact not in hits)
        return [*hits, *others][:limit]

    async def near(self, text: str, floor: float, limit: int) -> Sequence[Neighbour]:
        found = [
            Neighbour(fact, cosine)
            for fact in self.facts.values()
            if (cosine := self._cosines.get(frozenset((text, fact.text)), 0.0)) >= floor
        ]
        return sorted(found, key=lambda one: -one.cosine)[:limit]


class FactServiceDouble:
    """Port FactService in memory: each text is one fact, what is `said` can be quoted, and what is to be
    `asked` is read out of nothing.
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
    ) -> tuple[Learned, ...]:
        sentence = await self.own_sentence(session, quote)
        if text in self.asked or not sentence:
            return ()
        gone = tuple(self.facts.pop(i) for i in replaces if i in self.facts)
        return (replace(self._kept(sentence), gone=gone),)

    async def own_sentence(self, session: SessionKey, quote: str) -> str:
        return next((one for one in reversed(self.said) if quote in one), "")

    async def keep(
        self, text: str, session: SessionKey = NO_SESSION, category: Category | None = None
    ) -> tuple[Learned, ...]:
        return (self._kept(text, category or Category.PERSONAL),)

    async def keep_verbatim(self, sentence: str, session: SessionKey) -> tuple[Learned, ...]:
        return (self._kept(sentence),)

    async def matching(self, query: str) -> Matches:
        if query in self.facts:
            return Matches((self.facts[query],))
        wanted = _words(query)
        found = tuple(f for f in self.facts.values() if wanted <= _words(f.text))
        near = tuple(f for f in self.facts.values() if wanted & _words(f.text))
        return Matches(found) if found else Matches(maybe=near)

    async def forget(self, fact_ids: Sequence[str], also: Sequence[int] = ()) -> ErasureReport:
        for fact_id in fact_ids:
            if self.facts.pop(fact_id, None) is None:
                raise NotFound(f"there is no fact {fact_id}", cure="agentd facts list")
        self.forgotten.append((tuple(fact_ids), tuple(also)))
        return self.report

    def _kept(self, text: str, category: Category = Category.PERSONAL) -> Learned:
        for fact in self.facts.values():
            if fact.text.casefold() == text.casefold():
                return Learned(fact)
        now = self._clock.now()
        explicit = FactSource.EXPLICIT
        name = f"fct{len(self.facts) + 1}"
        fact = Fact(name, text, category, explicit, explicit.confidence, now, now)
        self.facts[name] = fact
        return Learned(fact, is_new=True)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
