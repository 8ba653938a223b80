"""Which change is taken back, and what that does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.fact import (
    Before,
    ChangeKind,
    Evidence,
    Fact,
    FactChange,
    FactWrite,
)
from agentd.core.turn import SessionKey
from agentd.memory.facts.known import Digests, Known
from agentd.memory.facts.reconcile import PageChange

LISTED = 1_000  # changes, the newest, that can be taken back

_KEEPS_NEW = frozenset({ChangeKind.MERGE, ChangeKind.ACCEPT})


def chosen(
    listed: Sequence[FactChange], known: Known, number: int | None, session: SessionKey | None
) -> FactChange:
    """The change of that number, or else the newest that can be taken back, of the session if one is
    given. `listed` are all changes, the newest first. Raises NotFound, InvalidRequest.
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
    """The newest that can be taken back. What is older than a forgetting has to be named: who takes back
    “the last thing” right after it means the forgetting. Raises NotFound.
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
    """What taking it back does to page and rows. It is the user's later word: what was said before brings
    nothing of it again, and the facts that hold again are as if he had just said them.
    """
    restored = [
        _restored(fact, before)
        for before in change.before
        if (fact := known.alive(before.id)) is not None
    ]
    if change.op is ChangeKind.ACCEPT:
        replaced = tuple(one.id for one in change.before if one.id != change.new)
        restored = [
            replace(fact, replaces=replaced) if fact.id == change.new else fact for fact in restored
        ]
    new = known.alive(change.new) if change.op is not ChangeKind.MERGE else None
    removed = (new.id,) if new is not None and change.op not in _KEEPS_NEW else ()
    write = FactWrite(
        tuple(restored),
        removed=removed,
        evidence=tuple(Evidence(now, fact_id=fact.id) for fact in restored if fact.is_active),
        undone=(change.id,),
        buried=taken_back([new] if new else [], digests, now),
    )
    return PageChange(write, written=tuple(restored), dropped=frozenset(removed))


def taken_back(facts: Iterable[Fact], digests: Digests, now: datetime) -> Mapping[bytes, datetime]:
    """The tombstones of facts that the user does not want to be read out of his words again."""
    names = (digests.of_taken_back(fact.text, fact.triple) for fact in facts)
    return {name: now for several in names for name in several}


def _restored(fact: Fact, before: Before) -> Fact:
    return replace(
        fact,
        status=before.status,
        valid_to=before.valid_to,
        superseded_by=before.superseded_by,
    )


def _why_not(
    change: FactChange, listed: Sequence[FactChange], known: Known
) -> tuple[str, str] | None:
    """Why a change cannot be taken back and what to do instead; None if it can."""
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
    """Whether something that these facts came of, or led to, was forgotten since that change."""
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
