"""A draft: the next state of the facts, built beside the present one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.fact import (
    NO_SESSION,
    ChangeKind,
    Evidence,
    Fact,
    FactChange,
    FactOperation,
    FactWrite,
    FormerState,
    Triple,
)
from agentd.core.turn import SessionKey
from agentd.memory.facts.known import FactLookup, Known, Tombstones, comparable


class OperationContext(Struct, frozen=True):
    """What a change needs besides the facts. `said` is the existing evidence by fact id; `session`
    is where the change is reported.
    """

    tombstones: Tombstones
    new_id: Callable[[], str]
    now: datetime
    said: Mapping[str, Sequence[Evidence]] = field(default_factory=dict)
    session: SessionKey = NO_SESSION


class Draft(FactLookup):
    """The known facts plus changes that nobody else sees yet, and everything that must be stored
    for them. A draft can be discarded; the state before it is unchanged.
    """

    def __init__(self, before: Known, context: OperationContext) -> None:
        self.before = before
        self.context = context
        self._facts: dict[str, Fact] = {}  # changed facts by id
        self._by_words: dict[str, list[str]] = defaultdict(list)
        self._evidence: dict[str, list[Evidence]] = defaultdict(list)
        self._lifted: list[bytes] = []
        self._changes: list[FactChange] = []
        self._named: dict[str, str] = {}  # operation name to the id of its fact

    def get(self, fact_id: str) -> Fact | None:
        """See FactLookup."""
        return self._facts.get(fact_id) or self.before.get(fact_id)

    def worded(self, text: str) -> tuple[Fact, ...]:
        """See FactLookup."""
        words = comparable(text)
        there = [fact for fact in self.before.worded(text) if fact.id not in self._facts]
        put = [self._facts[i] for i in self._by_words.get(words, ())]
        return (*there, *(f for f in put if f.is_alive and comparable(f.text) == words))

    def id_of(self, name: str) -> str:
        """Return the id of the fact that the operation of this name created; an id stands for
        itself.
        """
        return self._named.get(name, name)

    def standing(self, fact_id: str) -> Fact | None:
        """Return the fact that held under this id, or had replaced it, before the draft; None if it
        no longer holds. The ids in one answer refer to the facts as they were shown; otherwise a
        second operation on one of them would undo the first.
        """
        was = self.before.current(fact_id)
        now = self.get(was.id) if was is not None else None
        return now if now is not None and now.is_active else None

    def meant(self, name: str, triple: Triple | None = None) -> Fact | None:
        """Return the fact that an operation refers to by id or name, if it still holds: the one
        from before the draft, or one the draft created. A fact that replaced it in the draft counts
        if it has the subject and relation of `triple`.
        """
        if (fact := self.standing(name)) is not None:
            return fact
        if name in self._named:
            fact = self.get(self._named[name])
            return fact if fact is not None and fact.is_active else None
        fact = self.current(name)
        return fact if fact is not None and _is_of_one(fact.triple, triple) else None

    def put(self, fact: Fact) -> None:
        """Set the fact's new state."""
        self._facts[fact.id] = fact
        ids = self._by_words[comparable(fact.text)]
        if fact.id not in ids:
            ids.append(fact.id)

    def name(self, name: str, fact: Fact) -> None:
        """Let later operations refer to the fact by this name."""
        self._named[name] = fact.id

    def sayings(self, fact_id: str) -> list[Evidence]:
        """Return the fact's evidence, without the questions that it answers."""
        said = (*self.context.said.get(fact_id, ()), *self._evidence.get(fact_id, ()))
        return [one for one in said if not one.is_context]

    def last_said(self, fact: Fact) -> datetime:
        """Return when the user last stated the fact."""
        return max((fact.noted_at, *(one.at for one in self.sayings(fact.id))))

    def hear(self, fact_id: str, evidence: Sequence[Evidence]) -> None:
        """Add evidence of the fact."""
        self._evidence[fact_id] += [replace(one, fact_id=fact_id) for one in evidence]

    def lift(self, operation: FactOperation) -> None:
        """Remove the tombstones that forbid what the operation states."""
        self._lifted += self.context.tombstones.lifted(operation)

    def record(self, kind: ChangeKind, new: str, olds: Sequence[Fact]) -> FactChange:
        """Add a change to the list of changes. `olds` are the facts it changes, in their earlier
        state.
        """
        before = tuple(FormerState(f.id, f.status, f.valid_to, f.superseded_by) for f in olds)
        change = FactChange(kind, self.context.now, self.context.session, new, before)
        self._changes.append(change)
        return change

    def fresh_id(self) -> str:
        """Return an unused id."""
        while self.get(fact_id := self.context.new_id()) is not None:
            pass
        return fact_id

    def facts(self) -> tuple[Fact, ...]:
        """Return the changed facts in their new state."""
        return tuple(self._facts.values())

    def write(self, marks: Mapping[SessionKey, int] | None = None) -> FactWrite:
        """Return everything that must be stored. `marks` are stored with it."""
        return FactWrite(
            self.facts(),
            evidence=tuple(chain.from_iterable(self._evidence.values())),
            changes=tuple(self._changes),
            marks=marks or {},
            unburied=tuple(self._lifted),
        )


def _is_of_one(one: Triple | None, other: Triple | None) -> bool:
    """Whether both triples have the same subject and relation."""
    if one is None or other is None:
        return False
    return all(
        comparable(mine) == comparable(theirs)
        for mine, theirs in ((one.subject, other.subject), (one.relation, other.relation))
    )
