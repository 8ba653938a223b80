"""What operations do to the facts: one after the other, each seen by those behind it. Pure but for ids.

Among the user's own words the later one holds, whoever kept the earlier one. What is said in other
words, and what takes the place of what, whoever read the words has decided; here only times, ids and
equal words count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from agentd.core.fact import (
    Before,
    ChangeKind,
    Evidence,
    Fact,
    FactChange,
    FactOperation,
    FactSource,
    FactStatus,
    FactWrite,
    Learned,
    Op,
    Provenance,
    Refusal,
    Triple,
)
from agentd.core.turn import SessionKey
from agentd.memory.facts.known import Digests, Known, comparable

_MOST_SURE = 0.95  # however often it is said
_TOWARDS = 0.5  # of what is missing to that, with each new saying


@dataclass(frozen=True, slots=True)
class OperationContext:
    """What a batch needs besides the facts. `tombstones` are the digests of what was forgotten or taken back,
    each with when; `said` is what is evidence of a fact already, by its id.
    """

    digests: Digests
    tombstones: Mapping[bytes, datetime]
    said: Mapping[str, Sequence[Evidence]]
    new_id: Callable[[], str]
    session: SessionKey
    now: datetime


@dataclass(slots=True)
class Batch:
    """Operations on the facts in memory. `undo` takes all of them back; `write` is what they come to."""

    known: Known
    context: OperationContext
    _before: dict[str, Fact | None] = field(default_factory=dict)
    _evidence: dict[str, list[Evidence]] = field(default_factory=lambda: defaultdict(list))
    _unburied: list[bytes] = field(default_factory=list)
    _changes: list[FactChange] = field(default_factory=list)
    _brought: dict[str, str] = field(
        default_factory=dict
    )  # names of operations to the ids of facts

    def do(self, operation: FactOperation) -> Learned:
        """Do one operation. One that cannot be done changes nothing and says why."""
        learned = self._done(operation)
        if operation.name and learned.fact is not None:
            self._brought[operation.name] = learned.fact.id
        return learned

    def _done(self, operation: FactOperation) -> Learned:
        match operation.op:
            case Op.ADD | Op.REPLACE:
                return self._state(operation)
            case Op.END:
                return self._end(operation)
            case Op.SAME:
                return self._repeat(operation)

    def accept(self, proposed: Fact) -> Learned:
        """The user says yes to a proposed fact: it holds, as sure as what he says outright."""
        olds = self._targets(proposed.replaces)
        return self._accept(proposed, FactSource.EXPLICIT, olds, self.context.now)

    def merge(self, kept: Fact, others: Sequence[Fact], evidence: Sequence[Evidence]) -> FactChange:
        """Let one fact stand for others that say the same; what says them says it."""
        for fact in others:
            self._set_aside(fact, self.context.now, kept.id)
        self._add_evidence(kept.id, evidence)
        return self._changed(ChangeKind.MERGE, kept.id, tuple(map(_before, others)))

    def edit(self, old: Fact, operation: FactOperation) -> Learned:
        """The user has written another sentence in the line of a fact."""
        self._said_again(operation)
        fact = self._new(operation, FactStatus.ACTIVE)
        gone = self._set_aside(old, operation.at, fact.id)
        change = self._changed(ChangeKind.EDIT, fact.id, (_before(old),))
        return Learned(fact, is_new=True, gone=(gone,), change=change)

    def retire(self, successors: Mapping[str, str]) -> tuple[Fact, ...]:
        """Let facts hold no longer, each for the active one named beside it, or for none. What goes for
        the same one, or for none, is one change.
        """
        gone = []
        before: dict[str, list[Before]] = defaultdict(list)
        for fact_id, by in successors.items():
            fact, new = self.known.get(fact_id), self.known.get(by) if by else None
            if fact is None or not fact.is_active or (by and (new is None or not new.is_active)):
                continue
            before[by].append(_before(fact))
            gone.append(self._set_aside(fact, new.noted_at if new else self.context.now, by))
        for by, olds in before.items():
            self._changed(ChangeKind.MERGE if by else ChangeKind.END, by, tuple(olds))
        return tuple(gone)

    def put(self, fact: Fact) -> None:
        """Let the fact be as it is here."""
        self._before.setdefault(fact.id, self.known.get(fact.id))
        self.known.put(fact)

    def is_buried(self, text: str, at: datetime) -> bool:
        """Whether the user had these words erased after they were said."""
        forgotten = self.context.tombstones.get(self.context.digests.of(text))
        return forgotten is not None and forgotten >= at

    def forgotten(self, fact_ids: Sequence[str]) -> None:
        """Put into the list of changes that these are to be erased."""
        before = (self.known.alive(i) for i in fact_ids)
        self._changed(ChangeKind.FORGET, "", tuple(_before(fact) for fact in before if fact))

    def undo(self) -> None:
        """Nothing of all that happened."""
        for fact_id, fact in self._before.items():
            if fact is None:
                self.known.remove(fact_id)
            else:
                self.known.put(fact)

    def facts(self) -> tuple[Fact, ...]:
        """All that have changed, as they are now."""
        return tuple(fact for i in self._before if (fact := self.known.get(i)) is not None)

    def write(self, marks: Mapping[SessionKey, int] | None = None) -> FactWrite:
        """What is to be stored."""
        return FactWrite(
            self.facts(),
            evidence=tuple(chain.from_iterable(self._evidence.values())),
            changes=tuple(self._changes),
            marks=marks or {},
            unburied=tuple(self._unburied),
        )

    def _state(self, operation: FactOperation) -> Learned:
        """Keep a new fact, in the place of others if it replaces some."""
        if self._is_forgotten(operation):
            return Learned(reason=Refusal.FORGOTTEN)
        if operation.is_over:
            return Learned(self._past(operation), is_new=True)
        is_change = operation.op is Op.REPLACE
        olds = self._targets(operation.ids, operation.triple) if is_change else ()
        there = self.known.saying(operation.text)
        if there is not None and (there.is_active or not operation.is_proven):
            return self._confirm(there, operation, [old for old in olds if old.id != there.id])
        if there is not None:
            return self._prove(there, operation, olds)
        if (past := self._heard_then(operation)) is not None:
            return Learned(past)
        if not operation.is_proven:
            fact = self._new(operation, FactStatus.PROPOSED, tuple(old.id for old in olds))
            return Learned(fact, is_new=True)
        self._said_again(operation)
        return self._replace(operation, olds)

    def _heard_then(self, operation: FactOperation) -> Fact | None:
        """The fact that was made of these very words when they were read before, and holds no longer. Only
        what a model reads in a conversation is read again.
        """
        if not operation.name or operation.is_carried:
            return None
        words = comparable(operation.text)
        at_once = (fact for fact in self.known if fact.noted_at == operation.at and fact.is_alive)
        return next((fact for fact in at_once if comparable(fact.text) == words), None)

    def _past(self, operation: FactOperation) -> Fact:
        """What held once, with what came for it where that is known here."""
        by = self._brought.get(operation.by, operation.by)
        is_known = self.known.alive(by) is not None
        fact = self._new(operation, FactStatus.SUPERSEDED if is_known else FactStatus.ENDED)
        until = min(operation.valid_to or self.context.now, self.context.now)
        fact = replace(fact, valid_to=until, superseded_by=by if is_known else "")
        self.put(fact)
        return fact

    def _replace(self, operation: FactOperation, olds: Sequence[Fact]) -> Learned:
        newer = [old for old in olds if self._last_said(old) > operation.at]
        if newer:  # what was said since holds: this is history
            by = min(newer, key=self._last_said)
            fact = self._new(operation, FactStatus.SUPERSEDED, by=by)
            return self._put_aside(Learned(fact, is_new=True), olds, operation)
        status = FactStatus.ACTIVE
        if operation.valid_to is not None and operation.valid_to <= self.context.now:
            status = FactStatus.ENDED
        fact = self._new(operation, status)
        if olds:
            return self._put_aside(Learned(fact, is_new=True), olds, operation)
        return Learned(fact, is_new=True, change=self._changed(ChangeKind.ADD, fact.id, ()))

    def _confirm(self, there: Fact, operation: FactOperation, olds: Sequence[Fact]) -> Learned:
        """It is known in these words already; what it replaces besides goes."""
        if not operation.is_proven:
            return Learned(there)
        fact = self._heard_again(there, operation)
        return self._put_aside(Learned(fact), olds, operation)

    def _put_aside(
        self, learned: Learned, olds: Sequence[Fact], operation: FactOperation
    ) -> Learned:
        """The same, with those of the old facts gone that were not said again since."""
        assert learned.fact is not None
        older = self._not_since(olds, operation)
        if not older:
            return learned
        by = learned.fact.id
        gone = tuple(self._set_aside(old, operation.at, by) for old in older)
        # A known fact is not to go when the others are restored.
        kind = ChangeKind.REPLACE if learned.is_new else ChangeKind.MERGE
        change = self._changed(kind, by, tuple(map(_before, older)))
        return replace(learned, gone=gone, change=change)

    def _prove(self, proposed: Fact, operation: FactOperation, olds: Sequence[Fact]) -> Learned:
        """The user has said a proposed fact: it holds, as sure as what is read out of his words."""
        self._add_evidence(proposed.id, operation.evidence)
        replaced = {old.id: old for old in (*self._targets(proposed.replaces), *olds)}
        older = self._not_since(tuple(replaced.values()), operation)
        return self._accept(proposed, operation.source, older, operation.at)

    def _accept(
        self, proposed: Fact, source: FactSource, olds: Sequence[Fact], at: datetime
    ) -> Learned:
        sure = replace(
            proposed,
            status=FactStatus.ACTIVE,
            source=source,
            confidence=max(proposed.confidence, source.confidence),
            replaces=(),
        )
        gone = tuple(self._set_aside(old, at, proposed.id) for old in olds)
        self.put(sure)
        before = (_before(proposed), *map(_before, olds))
        change = self._changed(ChangeKind.ACCEPT, proposed.id, before)
        return Learned(sure, is_new=True, gone=gone, change=change)

    def _end(self, operation: FactOperation) -> Learned:
        if not operation.is_proven:
            return Learned(reason=Refusal.UNPROVEN)
        olds = self._not_since(self._targets(operation.ids), operation)
        if not olds:
            return Learned(reason=Refusal.UNKNOWN_ID)
        for old in olds:
            self._add_evidence(old.id, operation.evidence)
        until = operation.valid_to or operation.at
        if until > self.context.now:  # it holds until then
            gone = tuple(replace(old, valid_to=until) for old in olds)
            for fact in gone:
                self.put(fact)
        else:
            gone = tuple(self._set_aside(old, until) for old in olds)
        change = self._changed(ChangeKind.END, "", tuple(map(_before, olds)))
        return Learned(gone=gone, change=change)

    def _repeat(self, operation: FactOperation) -> Learned:
        if not operation.is_proven:
            return Learned(reason=Refusal.UNPROVEN)
        there = [fact for i in operation.ids if (fact := self._there(i)) is not None]
        if not there:
            return Learned(reason=Refusal.UNKNOWN_ID)
        learned = Learned()
        for fact in there:
            if fact.status is FactStatus.PROPOSED:
                learned = self._prove(fact, operation, ())
            else:
                learned = Learned(self._heard_again(fact, operation))
        return learned

    def _there(self, fact_id: str) -> Fact | None:
        fact = self.known.get(self._brought.get(fact_id, fact_id))
        if fact is not None and fact.status is FactStatus.PROPOSED:
            return fact
        return self._standing(fact_id)

    def _targets(self, ids: Sequence[str], triple: Triple | None = None) -> tuple[Fact, ...]:
        """The facts that held under these ids, or in their place, and still do; what this batch has
        brought goes by the name of its operation. What took the place of one in this batch is meant as
        well if it says the same of the same thing as the `triple` does.
        """
        found: dict[str, Fact] = {}
        for fact_id in ids:
            fact = self._standing(fact_id)
            if fact is None and fact_id in self._brought:
                fact = self.known.get(self._brought[fact_id])
                if fact is None or not fact.is_active:
                    continue
            if fact is None:
                fact = self.known.current(fact_id)
                if fact is None or not _is_of_one(fact.triple, triple):
                    continue
            found[fact.id] = fact
        return tuple(found.values())

    def _standing(self, fact_id: str) -> Fact | None:
        """The fact that held under this id, or in its place, before this batch; None if it holds no
        longer. The ids of one answer mean the facts as they were shown: otherwise a second operation on
        one of them would undo what the first has brought.
        """
        passed: set[str] = set()
        fact = self._as_it_was(fact_id)
        while fact is not None and fact.status is FactStatus.SUPERSEDED and fact.id not in passed:
            passed.add(fact.id)
            fact = self._as_it_was(fact.superseded_by)
        now = self.known.get(fact.id) if fact is not None and fact.is_active else None
        return now if now is not None and now.is_active else None

    def _as_it_was(self, fact_id: str) -> Fact | None:
        return self._before[fact_id] if fact_id in self._before else self.known.alive(fact_id)

    def _new(
        self,
        operation: FactOperation,
        status: FactStatus,
        replaces: tuple[str, ...] = (),
        by: Fact | None = None,
    ) -> Fact:
        since = operation.valid_from or operation.at
        sure = operation.source.confidence
        until = max(by.valid_from, since) if by else operation.valid_to
        spoken = next((one for one in operation.evidence if not one.is_context), None)
        fact = Fact(
            id=self._fresh_id(),
            text=operation.text,
            category=operation.category,
            source=operation.source,
            confidence=sure if operation.confidence is None else operation.confidence,
            valid_from=since,
            noted_at=operation.at,
            status=status,
            valid_to=until,
            superseded_by=by.id if by else "",
            origin=spoken.origin if spoken else Provenance(),
            triple=operation.triple,
            replaces=replaces,
        )
        self.put(fact)
        self._add_evidence(fact.id, operation.evidence)
        return fact

    def _heard_again(self, there: Fact, operation: FactOperation) -> Fact:
        """The fact with one more piece of evidence, and the surer for it if that is new."""
        known = {one.at for one in self._sayings(there.id)}  # a copy has the time of its original
        spoken = [one for one in operation.evidence if not one.is_context]
        is_new = any(one.at not in known for one in spoken)
        self._add_evidence(there.id, operation.evidence)
        sure = there.confidence
        if is_new and sure < _MOST_SURE:
            sure += (_MOST_SURE - sure) * _TOWARDS
        source = there.source
        if operation.source is not FactSource.EXTRACTED:
            source = operation.source if source is FactSource.EXTRACTED else source
            sure = max(sure, operation.source.confidence)
        heard = replace(
            there,
            confidence=round(sure, 4),
            source=source,
            triple=there.triple or operation.triple,
        )
        if heard != there:
            self.put(heard)
        return heard

    def _not_since(self, olds: Sequence[Fact], operation: FactOperation) -> list[Fact]:
        """Those that were not said again after the words of the operation."""
        return [old for old in olds if self._last_said(old) <= operation.at]

    def _last_said(self, fact: Fact) -> datetime:
        return max((fact.noted_at, *(one.at for one in self._sayings(fact.id))))

    def _sayings(self, fact_id: str) -> list[Evidence]:
        said = (*self.context.said.get(fact_id, ()), *self._evidence.get(fact_id, ()))
        return [one for one in said if not one.is_context]

    def _set_aside(self, old: Fact, at: datetime, by: str = "") -> Fact:
        status = FactStatus.SUPERSEDED if by else FactStatus.ENDED
        until = max(at, old.valid_from)
        old = replace(old, status=status, valid_to=until, superseded_by=by)
        self.put(old)
        return old

    def _changed(self, op: ChangeKind, new: str, before: tuple[Before, ...]) -> FactChange:
        change = FactChange(op, self.context.now, self.context.session, new, before)
        self._changes.append(change)
        return change

    def _is_forgotten(self, operation: FactOperation) -> bool:
        """Whether the user had it erased or took it back, and has not said it since."""
        if self._is_taken_back(operation):
            return True
        if operation.is_carried or not operation.is_proven:
            return self.context.digests.of(operation.text) in self.context.tombstones
        return self.is_buried(operation.text, operation.at)

    def _is_taken_back(self, operation: FactOperation) -> bool:
        """Whether the user took back what these words led to, after he had said them."""
        if operation.is_carried:
            return False
        names = self.context.digests.of_taken_back(operation.text, operation.triple)
        found = (self.context.tombstones.get(name) for name in names)
        return any(at is not None and at >= operation.at for at in found)

    def _said_again(self, operation: FactOperation) -> None:
        digests = self.context.digests
        names = digests.of(operation.text), *digests.of_taken_back(operation.text, operation.triple)
        self._unburied += [name for name in names if name in self.context.tombstones]

    def _add_evidence(self, fact_id: str, evidence: Sequence[Evidence]) -> None:
        self._evidence[fact_id] += [replace(one, fact_id=fact_id) for one in evidence]

    def _fresh_id(self) -> str:
        while self.known.get(fact_id := self.context.new_id()) is not None:
            pass
        return fact_id


def _is_of_one(one: Triple | None, other: Triple | None) -> bool:
    """Whether both triples say the same of the same thing, with whatever value."""
    if one is None or other is None:
        return False
    return all(
        comparable(mine) == comparable(theirs)
        for mine, theirs in ((one.subject, other.subject), (one.relation, other.relation))
    )


def _before(fact: Fact) -> Before:
    return Before(fact.id, fact.status, fact.valid_to, fact.superseded_by)
