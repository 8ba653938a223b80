"""Applies operations to a draft of the facts, in order; each sees the results of those before it.

Among the user's own words the later ones win, whoever stored the earlier ones. The reader of the
words has already decided which statements are equal and what replaces what; here only times, ids
and equal words count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from agentd.core.fact import (
    ChangeKind,
    Fact,
    FactChange,
    FactOperation,
    FactSource,
    FactStatus,
    OperationKind,
    OperationResult,
    Provenance,
    Refusal,
    Triple,
)
from agentd.memory.facts.draft import Draft

_MOST_SURE = 0.95  # highest confidence, however often a fact is repeated
_TOWARDS = 0.5  # each repetition closes this share of the gap to _MOST_SURE


def apply(draft: Draft, operation: FactOperation) -> OperationResult:
    """Apply one operation. If it cannot be applied, nothing changes and the result gives the
    reason.
    """
    learned = _apply(draft, operation)
    if operation.name and learned.fact is not None:
        draft.name(operation.name, learned.fact)
    return learned


def accept(draft: Draft, proposed: Fact) -> OperationResult:
    """Accept a proposed fact on the user's word: it becomes active, with the confidence of an
    explicit one.
    """
    olds = _resolve(draft, proposed.replaces)
    return _accept(draft, proposed, FactSource.EXPLICIT, olds, draft.context.now)


def merge(draft: Draft, kept: Fact, others: Sequence[Fact]) -> FactChange:
    """Let one fact replace others that say the same; it inherits their evidence."""
    for fact in others:
        _end_fact(draft, fact, draft.context.now, kept.id)
        draft.hear(kept.id, draft.context.said.get(fact.id, ()))
    return draft.record(ChangeKind.MERGE, kept.id, others)


def edit(draft: Draft, old: Fact, operation: FactOperation) -> OperationResult:
    """Replace a fact by the sentence that the user has written in its line."""
    draft.lift(operation)
    fact = _new(draft, operation, FactStatus.ACTIVE)
    gone = _end_fact(draft, old, operation.at, fact.id)
    change = draft.record(ChangeKind.EDIT, fact.id, [old])
    return OperationResult(fact, is_new=True, gone=(gone,), change=change)


def end_facts(draft: Draft, successors: Mapping[str, str]) -> tuple[Fact, ...]:
    """End facts, each superseded by the active one named beside it, or by none. Facts with the same
    successor, and those with none, form one change.
    """
    gone = []
    before: dict[str, list[Fact]] = defaultdict(list)
    for fact_id, by in successors.items():
        fact, new = draft.get(fact_id), draft.get(by) if by else None
        if fact is None or not fact.is_active or (by and (new is None or not new.is_active)):
            continue
        before[by].append(fact)
        gone.append(_end_fact(draft, fact, new.noted_at if new else draft.context.now, by))
    for by, olds in before.items():
        draft.record(ChangeKind.MERGE if by else ChangeKind.END, by, olds)
    return tuple(gone)


def _apply(draft: Draft, operation: FactOperation) -> OperationResult:
    match operation.op:
        case OperationKind.ADD | OperationKind.REPLACE:
            return _state(draft, operation)
        case OperationKind.END:
            return _end(draft, operation)
        case OperationKind.SAME:
            return _repeat(draft, operation)


def _state(draft: Draft, operation: FactOperation) -> OperationResult:
    """Add a new fact, which replaces others if the operation says so."""
    if draft.context.tombstones.is_forgotten(operation):
        return OperationResult(reason=Refusal.FORGOTTEN)
    if operation.is_over:
        return OperationResult(_past(draft, operation), is_new=True)
    is_change = operation.op is OperationKind.REPLACE
    olds = _resolve(draft, operation.ids, operation.triple) if is_change else ()
    there = draft.saying(operation.text)
    if there is not None and (there.is_active or not operation.is_proven):
        return _confirm(draft, there, operation, [old for old in olds if old.id != there.id])
    if there is not None:
        return _prove(draft, there, operation, olds)
    if (past := _earlier_reading(draft, operation)) is not None:
        return OperationResult(past)
    if not operation.is_proven:
        fact = _new(draft, operation, FactStatus.PROPOSED, tuple(old.id for old in olds))
        return OperationResult(fact, is_new=True)
    draft.lift(operation)
    return _replace(draft, operation, olds)


def _end(draft: Draft, operation: FactOperation) -> OperationResult:
    if not operation.is_proven:
        return OperationResult(reason=Refusal.UNPROVEN)
    olds = _not_since(draft, _resolve(draft, operation.ids), operation)
    if not olds:
        return OperationResult(reason=Refusal.UNKNOWN_ID)
    for old in olds:
        draft.hear(old.id, operation.evidence)
    until = operation.valid_to or operation.at
    if until > draft.context.now:  # the facts stay active until then
        gone = tuple(replace(old, valid_to=until) for old in olds)
        for fact in gone:
            draft.put(fact)
    else:
        gone = tuple(_end_fact(draft, old, until) for old in olds)
    return OperationResult(gone=gone, change=draft.record(ChangeKind.END, "", olds))


def _repeat(draft: Draft, operation: FactOperation) -> OperationResult:
    if not operation.is_proven:
        return OperationResult(reason=Refusal.UNPROVEN)
    learned = OperationResult(reason=Refusal.UNKNOWN_ID)
    for fact in [_there(draft, i) for i in operation.ids]:
        if fact is not None and fact.status is FactStatus.PROPOSED:
            learned = _prove(draft, fact, operation, ())
        elif fact is not None:
            learned = OperationResult(_add_evidence(draft, fact, operation))
    return learned


def _there(draft: Draft, name: str) -> Fact | None:
    """Return the fact that can be repeated: a proposed one, or one that was active before the
    draft.
    """
    fact = draft.get(draft.id_of(name))
    if fact is not None and fact.status is FactStatus.PROPOSED:
        return fact
    return draft.standing(name)


def _earlier_reading(draft: Draft, operation: FactOperation) -> Fact | None:
    """Return the fact that an earlier reading made of these very words and that is no longer
    active; None if there is none. Only what a model reads from a conversation can be read twice.
    """
    if not operation.name or operation.is_carried:
        return None
    worded = draft.worded(operation.text)
    return next((fact for fact in worded if fact.noted_at == operation.at), None)


def _past(draft: Draft, operation: FactOperation) -> Fact:
    """Add a fact that no longer holds, with its successor if that is known here."""
    by = draft.id_of(operation.by)
    is_known = draft.alive(by) is not None
    fact = _new(draft, operation, FactStatus.SUPERSEDED if is_known else FactStatus.ENDED)
    until = min(operation.valid_to or draft.context.now, draft.context.now)
    fact = replace(fact, valid_to=until, superseded_by=by if is_known else "")
    draft.put(fact)
    return fact


def _replace(draft: Draft, operation: FactOperation, olds: Sequence[Fact]) -> OperationResult:
    newer = [old for old in olds if draft.last_said(old) > operation.at]
    if newer:  # a later statement wins
        by = min(newer, key=draft.last_said)
        fact = _new(draft, operation, FactStatus.SUPERSEDED, by=by)
        return _end_replaced(draft, OperationResult(fact, is_new=True), olds, operation)
    status = FactStatus.ACTIVE
    if operation.valid_to is not None and operation.valid_to <= draft.context.now:
        status = FactStatus.ENDED
    fact = _new(draft, operation, status)
    if olds:
        return _end_replaced(draft, OperationResult(fact, is_new=True), olds, operation)
    return OperationResult(fact, is_new=True, change=draft.record(ChangeKind.ADD, fact.id, ()))


def _confirm(
    draft: Draft, there: Fact, operation: FactOperation, olds: Sequence[Fact]
) -> OperationResult:
    """Record the repetition of a known fact, and end the facts it replaces."""
    if not operation.is_proven:
        return OperationResult(there)
    fact = _add_evidence(draft, there, operation)
    return _end_replaced(draft, OperationResult(fact), olds, operation)


def _end_replaced(
    draft: Draft, learned: OperationResult, olds: Sequence[Fact], operation: FactOperation
) -> OperationResult:
    """End the old facts that were not repeated since, and return the result with them."""
    assert learned.fact is not None
    older = _not_since(draft, olds, operation)
    if not older:
        return learned
    by = learned.fact.id
    gone = tuple(_end_fact(draft, old, operation.at, by) for old in older)
    # As a merge, so that undoing it does not delete the known fact.
    kind = ChangeKind.REPLACE if learned.is_new else ChangeKind.MERGE
    return replace(learned, gone=gone, change=draft.record(kind, by, older))


def _prove(
    draft: Draft, proposed: Fact, operation: FactOperation, olds: Sequence[Fact]
) -> OperationResult:
    """Make a proposed fact active because the user has stated it, with the confidence of its
    source.
    """
    draft.hear(proposed.id, operation.evidence)
    replaced = {old.id: old for old in (*_resolve(draft, proposed.replaces), *olds)}
    older = _not_since(draft, tuple(replaced.values()), operation)
    return _accept(draft, proposed, operation.source, older, operation.at)


def _accept(
    draft: Draft, proposed: Fact, source: FactSource, olds: Sequence[Fact], at: datetime
) -> OperationResult:
    sure = replace(
        proposed,
        status=FactStatus.ACTIVE,
        source=source,
        confidence=max(proposed.confidence, source.confidence),
        replaces=(),
    )
    gone = tuple(_end_fact(draft, old, at, proposed.id) for old in olds)
    draft.put(sure)
    change = draft.record(ChangeKind.ACCEPT, proposed.id, [proposed, *olds])
    return OperationResult(sure, is_new=True, gone=gone, change=change)


def _resolve(draft: Draft, names: Sequence[str], triple: Triple | None = None) -> tuple[Fact, ...]:
    found = [fact for name in names if (fact := draft.meant(name, triple)) is not None]
    return tuple({fact.id: fact for fact in found}.values())


def _new(
    draft: Draft,
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
        id=draft.fresh_id(),
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
    draft.put(fact)
    draft.hear(fact.id, operation.evidence)
    return fact


def _add_evidence(draft: Draft, there: Fact, operation: FactOperation) -> Fact:
    """Return the fact with the new evidence, and with higher confidence if that is new."""
    known = {one.at for one in draft.sayings(there.id)}  # copies have the time of their original
    spoken = [one for one in operation.evidence if not one.is_context]
    is_new = any(one.at not in known for one in spoken)
    draft.hear(there.id, operation.evidence)
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
        draft.put(heard)
    return heard


def _not_since(draft: Draft, olds: Sequence[Fact], operation: FactOperation) -> list[Fact]:
    """Return the facts that were not repeated after the words of the operation."""
    return [old for old in olds if draft.last_said(old) <= operation.at]


def _end_fact(draft: Draft, old: Fact, at: datetime, by: str = "") -> Fact:
    status = FactStatus.SUPERSEDED if by else FactStatus.ENDED
    until = max(at, old.valid_from)
    old = replace(old, status=status, valid_to=until, superseded_by=by)
    draft.put(old)
    return old
