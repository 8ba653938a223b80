"""The facts in memory, found by what they say and by the slot that they fill."""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from agentd.domain.fact import Fact, FactStatus, Statement, Triple
from agentd.facts.judge import slot
from agentd.statements import relations
from agentd.statements.definite import definite
from agentd.statements.normal import normalised


class Known:
    """All facts by id. Only active ones are found by text and slot."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, Fact] = {}
        self._places: dict[str, dict[str, None]] = defaultdict(dict)
        for fact in facts:
            self.put(fact)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts.values())

    def __len__(self) -> int:
        return len(self._facts)

    def get(self, fact_id: str) -> Fact | None:
        """The fact, a forgotten one too."""
        return self._facts.get(fact_id)

    def alive(self, fact_id: str) -> Fact | None:
        """The fact unless it is forgotten."""
        fact = self._facts.get(fact_id)
        return None if fact is None or fact.status is FactStatus.FORGOTTEN else fact

    def put(self, fact: Fact) -> None:
        """Add it, or replace the one of its id."""
        self._hide(fact.id)
        self._facts[fact.id] = fact
        if fact.is_active:
            for place in _places(fact):
                self._places[place][fact.id] = None

    def restore(self, fact_id: str, fact: Fact | None) -> None:
        """Let the fact be as it was; None takes it out."""
        self._hide(fact_id)
        self._facts.pop(fact_id, None)
        if fact is not None:
            self.put(fact)

    def related(self, statement: Statement) -> tuple[Fact, ...]:
        """The active facts that say the same, or fill a slot that it may empty."""
        slots = relations.slots(statement.triple) if statement.triple else ()
        wanted = (*_names(statement.text, statement.triple), *(f"slot\0{one}" for one in slots))
        ids = {fact_id: None for place in wanted for fact_id in self._places.get(place, ())}
        return tuple(self._facts[fact_id] for fact_id in ids)

    def chain(self, fact_id: str) -> tuple[Fact, ...]:
        """The fact with all it replaced and was replaced by, the oldest first."""
        before: dict[str, list[str]] = defaultdict(list)
        for fact in self:
            if fact.superseded_by:
                before[fact.superseded_by].append(fact.id)
        found: dict[str, Fact] = {}
        waiting = [fact_id]
        while waiting:
            one = self._facts.get(waiting.pop())
            if one is not None and one.id not in found:
                found[one.id] = one
                waiting += [*before[one.id], one.superseded_by]
        return tuple(sorted(found.values(), key=lambda fact: (fact.valid_from, fact.noted_at)))

    def _hide(self, fact_id: str) -> None:
        before = self._facts.get(fact_id)
        if before is not None and before.is_active:
            for place in _places(before):
                self._places[place].pop(before.id, None)


def came_of(fact: Fact, facts: Mapping[str, Fact]) -> Fact | None:
    """The active fact that holds in the place of a superseded one; None if nothing came of it, and for
    a fact that holds itself.
    """
    passed: set[str] = set()
    one: Fact | None = fact
    while one is not None and one.status is FactStatus.SUPERSEDED and one.id not in passed:
        passed.add(one.id)
        one = facts.get(one.superseded_by)
    return one if one is not None and one.is_active and one.id != fact.id else None


class Digests:
    """Keyed hashes by which something forgotten is known again, without its words."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, text: str, triple: Triple | None) -> tuple[bytes, ...]:
        """What a sentence and its triple are known by."""
        return tuple(
            hmac.new(self._key, name.encode(errors="replace"), hashlib.sha256).digest()
            for name in _marks(text, triple)
        )


def _places(fact: Fact) -> tuple[str, ...]:
    return _names(fact.text, fact.triple)


def _names(text: str, triple: Triple | None) -> tuple[str, ...]:
    said = f"text\0{normalised(text)}"
    each = dict.fromkeys(slot(one) for one in (triple, definite(text)) if one)
    return (said, *(f"slot\0{one}" for one in each))


def _marks(text: str, triple: Triple | None) -> tuple[str, ...]:
    said = f"text\0{normalised(text)}"
    return (said, f"triple\0{slot(triple)}\0{normalised(triple.value)}") if triple else (said,)
