"""Computes changes of the facts: pure functions that return a result and what changes on the page
and in the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from agentd.core.erasure import MASK
from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.fact import (
    ChangeKind,
    Evidence,
    Fact,
    FactChange,
    FactOperation,
    FactStatus,
    FactWrite,
    ForgetRequest,
    FormerState,
    OperationKind,
    OperationResult,
    Provenance,
    Refusal,
)
from agentd.core.redaction import tells_secret
from agentd.core.turn import SessionKey
from agentd.memory.facts import operations
from agentd.memory.facts.draft import Draft, OperationContext
from agentd.memory.facts.known import Digests, FactLookup, Known
from agentd.memory.facts.page_entry import MOST_CHARS, clean, clean_triple
from agentd.memory.facts.reconcile import PageChange

LISTED = 1_000  # how many of the newest changes can be undone
REVIEW = SessionKey("review")  # under this name the merges of a daily review are listed
_A_REVIEW = timedelta(hours=1)  # at most from its first merge to its last
_NEWS = timedelta(days=7)  # how long what a review has merged is told

_FAR_TOO_LONG = 16 * MOST_CHARS  # refused without cleaning it first
_KEEPS_NEW = frozenset({ChangeKind.MERGE, ChangeKind.ACCEPT})


def objection(text: str) -> Refusal | None:
    """Return why a text must not become a fact; None if it may. A bare MASK, left by an erasure, is
    EMPTY.
    """
    if text.strip() == MASK:
        return Refusal.EMPTY
    return Refusal.CREDENTIAL if tells_secret(text) else None


def learned(
    known: Known,
    wanted: Sequence[FactOperation],
    context: OperationContext,
    marks: Mapping[SessionKey, int] | None = None,
) -> tuple[tuple[OperationResult, ...], PageChange]:
    """Apply the operations in order. `marks` record up to which row each session has been read."""
    draft = Draft(known, context)
    results = tuple(_apply_checked(draft, operation) for operation in wanted)
    return results, PageChange(draft.write(marks), draft.facts())


def merged_lately(listed: Iterable[FactChange], now: datetime) -> int:
    """Return how many facts were merged by the last review that merged any, not counting merges
    that were undone; 0 once that review is a week old.
    """
    merges = [one for one in listed if one.session == REVIEW and not one.undone]
    last = max((one.at for one in merges), default=now - _NEWS)
    if now - last >= _NEWS:
        return 0
    return sum(len(one.old) for one in merges if last - one.at < _A_REVIEW)


def merged(
    known: Known, keep: str, others: Sequence[str], context: OperationContext
) -> tuple[None, PageChange]:
    """Let the fact `keep` replace the others. Raises NotFound, InvalidRequest."""
    kept, *rest = (_holding(known, i) for i in (keep, *dict.fromkeys(others)))
    if kept in rest or not rest:
        raise InvalidRequest("a fact cannot be merged with itself", cure="name the others after it")
    draft = Draft(known, context)
    operations.merge(draft, kept, rest)
    return None, PageChange(draft.write(), draft.facts())


def accepted(
    known: Known, fact_ids: Sequence[str], context: OperationContext
) -> tuple[tuple[OperationResult, ...], PageChange]:
    """Make proposed facts active. Raises NotFound."""
    draft = Draft(known, context)
    results = tuple(operations.accept(draft, _require_proposed(draft, i)) for i in fact_ids)
    return results, PageChange(draft.write(), draft.facts())


def rejected(
    known: Known, fact_ids: Sequence[str], digests: Digests, now: datetime
) -> tuple[tuple[Fact, ...], PageChange]:
    """Delete proposed facts as if they had never existed. Raises NotFound."""
    facts = tuple(_require_proposed(known, i) for i in fact_ids)
    ids = tuple(fact.id for fact in facts)
    return facts, _take_away(
        known, FactWrite(removed=ids, buried=tombstones_for(facts, digests, now))
    )


def forgotten(
    known: Known,
    fact_ids: Sequence[str],
    also: Sequence[int],
    asked: Sequence[ForgetRequest],
    context: OperationContext,
) -> tuple[None, PageChange]:
    """Turn the facts into tombstones, and have the words that state them erased. Raises
    NotFound.
    """
    draft = Draft(known, context)
    draft.record(ChangeKind.FORGET, "", living(known, fact_ids))
    left = tuple(i for i in known.parked if i not in fact_ids)
    return None, PageChange(
        replace(draft.write(), parked=left),
        buried=dict.fromkeys(fact_ids, context.now),
        also=tuple(also),
        asked=tuple(asked),
    )


def facts_ended(
    known: Known, successors: Mapping[str, str], context: OperationContext
) -> tuple[tuple[Fact, ...], PageChange]:
    """End facts, each superseded by the one named beside it, or by none."""
    draft = Draft(known, context)
    gone = operations.end_facts(draft, successors)
    return gone, PageChange(draft.write(), draft.facts())


def unlinked(known: Known, session: SessionKey) -> tuple[int, PageChange]:
    """Remove the session as the origin of all facts said in it."""
    facts = tuple(replace(f, origin=Provenance()) for f in known if f.origin.session == session)
    return len(facts), PageChange(FactWrite(facts), written=facts)


def expired(known: Known, now: datetime) -> PageChange | None:
    """Mark facts as ended whose end has passed; None if there are none."""
    facts = tuple(replace(fact, status=FactStatus.ENDED) for fact in known.ended(now))
    return PageChange(FactWrite(facts), written=facts) if facts else None


def restored(known: Known) -> tuple[tuple[Fact, ...], PageChange]:
    """Write the missing lines on the page again."""
    missing = known.parked_facts()
    return missing, PageChange(FactWrite(parked=()), written=missing)


def living(known: Known, fact_ids: Sequence[str]) -> tuple[Fact, ...]:
    """Return the facts with these ids. Raises NotFound for one that is forgotten or unknown."""
    found = []
    for fact_id in fact_ids:
        fact = known.alive(fact_id)
        if fact is None:
            raise unknown(fact_id)
        found.append(fact)
    return tuple(found)


def unknown(fact_id: str) -> NotFound:
    """Return the error for an unknown id."""
    return NotFound(f"there is no fact {fact_id}", cure="`agentd facts list` shows all of them")


def choose_change(
    listed: Sequence[FactChange], known: Known, number: int | None, session: SessionKey | None
) -> FactChange:
    """Return the change of that number, else the newest that can be undone, of the session if
    given. `listed` are all changes, newest first. Raises NotFound, InvalidRequest.
    """
    if number is None:
        return _newest(listed, known, session)
    for one in listed:
        if one.id == number:
            if one.undone:
                raise InvalidRequest(
                    f"change {number} was taken back already",
                    cure="`agentd facts changes` lists what can be",
                )
            if why := _why_not(one, listed, known):
                raise InvalidRequest(f"change {number} cannot be taken back: {why[0]}", cure=why[1])
            return one
    raise NotFound(f"there is no change {number}", cure="`agentd facts changes` lists them")


def _newest(listed: Sequence[FactChange], known: Known, session: SessionKey | None) -> FactChange:
    """Return the newest change that can be undone. A change older than a forgetting must be named,
    because a user who undoes “the last thing” right after it means the forgetting. Raises NotFound.
    """
    forgotten = max((one.id for one in listed if one.op is ChangeKind.FORGET), default=0)
    for one in listed:
        is_own = session is None or one.session == session
        if not is_own or one.undone or one.op is ChangeKind.FORGET:
            continue
        if _why_not(one, listed, known):
            continue
        if one.id < forgotten:
            raise NotFound(
                "nothing was changed since the last forgetting, which cannot be taken back",
                cure=f"`agentd facts undo {one.id}` takes back the newest change before it",
            )
        return one
    raise NotFound("there is no change to take back", cure="`agentd facts changes` lists them")


def undone(change: FactChange, known: Known, digests: Digests, now: datetime) -> PageChange:
    """Return what undoing a change does to page and rows. An undo is the user's latest word:
    earlier words do not bring the undone facts back, and restored facts count as just said.
    """
    again = [
        _as_before(fact, before)
        for before in change.before
        if (fact := known.alive(before.id)) is not None
    ]
    if change.op is ChangeKind.ACCEPT:
        replaced = tuple(one.id for one in change.before if one.id != change.new)
        again = [
            replace(fact, replaces=replaced) if fact.id == change.new else fact for fact in again
        ]
    new = known.alive(change.new) if change.op is not ChangeKind.MERGE else None
    removed = (new.id,) if new is not None and change.op not in _KEEPS_NEW else ()
    write = FactWrite(
        tuple(again),
        removed=removed,
        evidence=tuple(Evidence(now, fact_id=fact.id) for fact in again if fact.is_active),
        undone=(change.id,),
        buried=tombstones_for([new] if new else [], digests, now),
    )
    return _take_away(known, write)


def tombstones_for(
    facts: Iterable[Fact], digests: Digests, now: datetime
) -> Mapping[bytes, datetime]:
    """Return tombstones for facts that must not be read from the user's earlier words again."""
    names = (digests.of_taken_back(fact.text, fact.triple) for fact in facts)
    return {name: now for several in names for name in several}


def _apply_checked(draft: Draft, operation: FactOperation) -> OperationResult:
    """Apply one operation, unless its text cannot be a fact."""
    if operation.op in (OperationKind.ADD, OperationKind.REPLACE):
        if len(operation.text) > _FAR_TOO_LONG or len(text := clean(operation.text)) > MOST_CHARS:
            return OperationResult(reason=Refusal.TOO_LONG)
        if why := objection(text) if text else Refusal.EMPTY:
            return OperationResult(reason=why)
        operation = replace(operation, text=text)
    return operations.apply(draft, replace(operation, triple=clean_triple(operation.triple)))


def _holding(known: Known, fact_id: str) -> Fact:
    fact = known.get(fact_id)
    if fact is None or not fact.is_active:
        raise unknown(fact_id)
    return fact


def _require_proposed(facts: FactLookup, fact_id: str) -> Fact:
    fact = facts.get(fact_id)
    if fact is None or fact.status is not FactStatus.PROPOSED:
        raise NotFound(
            f"no proposed fact has the id {fact_id}",
            cure="`agentd facts pending` lists what waits for your yes",
        )
    return fact


def _take_away(known: Known, write: FactWrite) -> PageChange:
    """Return the change that deletes facts as if they had never existed."""
    left = tuple(i for i in known.parked if i not in write.removed)
    write = replace(write, parked=left)
    return PageChange(write, written=write.facts, dropped=frozenset(write.removed))


def _as_before(fact: Fact, before: FormerState) -> Fact:
    return replace(
        fact,
        status=before.status,
        valid_to=before.valid_to,
        superseded_by=before.superseded_by,
    )


def _why_not(
    change: FactChange, listed: Sequence[FactChange], known: Known
) -> tuple[str, str] | None:
    """Return why a change cannot be undone, and what to do instead; None if it can."""
    if change.op is ChangeKind.FORGET:
        return "what was forgotten is erased", "say it again if you want it known"
    mine = {change.new, *change.old} - {""}
    newer = [one for one in listed if one.id > change.id and not one.undone]
    if _is_behind_forgetting(change.id, mine, listed):
        return "what it was about was forgotten since", "`agentd facts list` shows what holds"
    if change.new and known.get(change.new) is None:
        return "its fact is not there any more", "`agentd facts list` shows what holds"
    for one in newer:
        if mine & {one.new, *one.old}:
            return f"change {one.id} came after it", f"take back change {one.id} first"
    if any(known.get(before.id) is None for before in change.before):
        return "its fact is not there any more", "`agentd facts list` shows what holds"
    return None


def _is_behind_forgetting(number: int, mine: set[str], listed: Sequence[FactChange]) -> bool:
    """Whether a fact connected with these by changes was forgotten after that change."""
    reached, grown = set(mine), True
    while grown:
        grown = False
        for one in listed:
            ids = {one.new, *one.old} - {""}
            if one.op is not ChangeKind.FORGET and ids & reached and not ids <= reached:
                reached |= ids
                grown = True
    later = (one for one in listed if one.id > number and one.op is ChangeKind.FORGET)
    return any(reached & set(one.old) for one in later)
