"""What the user has changed in the page of facts, told by comparing it with the rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from agentd.domain.fact import Category, Fact, FactSource, FactStatus, Refusal, Statement
from agentd.facts.annotation import Entry
from agentd.facts.known import Known
from agentd.facts.page import Page, Part, Placed
from agentd.facts.screen import Screen
from agentd.statements.claims import claims, triple_of

_MANY = 5  # lines that may go at once
_FEW = 5  # facts below which their share does not count
_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Differences:
    """How the page differs from the rows."""

    taken: tuple[Fact, ...] = ()  # facts as the page says them
    rewritten: tuple[Fact, ...] = ()  # those of them that it does not say completely
    edited: tuple[tuple[Placed, Fact], ...] = ()  # another text under the id of an active fact
    fresh: tuple[Placed, ...] = ()  # lines without an id
    gone: tuple[str, ...] = ()  # facts whose line the user took out
    parked: tuple[str, ...] = ()  # those of which that is doubted
    buried: Mapping[str, datetime] = field(default_factory=dict)  # forgotten on the page alone
    dead: tuple[Fact, ...] = ()  # forgotten facts that stand there again
    # lines under unknown ids, and what speaks against them
    refused: tuple[tuple[int, Refusal], ...] = ()


def compare(
    page: Page,
    known: Known,
    parked: Collection[str],
    now: datetime,
    screen: Screen,
    *,
    trusted: bool,
) -> Differences:
    """The differences. Unless the page is `trusted`, nothing that misses there is taken for gone.
    Lines under unknown ids are screened, unless there are no rows at all: then the page makes them.
    """
    taken, rewritten, edited, fresh, dead, refused = [], [], [], [], [], []
    graves = page.graves()
    for place in page.placed():
        entry = place.line.entry
        if entry is None:
            continue
        row = known.get(entry.id) if entry.id else None
        if not entry.id:
            fresh.append(place)
        elif entry.id in graves or (row and row.status is FactStatus.FORGOTTEN):
            dead.append(said_by(place, None, now))
        elif row and row.is_active and not _is_over(place) and entry.text != row.text:
            edited.append((place, row))
        elif row is None and len(known) and (why := screen(entry.text)):
            refused.append((place.number, why))
        else:
            said = said_by(place, row, now)
            if said != row:
                taken.append(said)
            if not entry.is_complete or (not entry.until and not said.is_active):
                rewritten.append(said)
    taken += [Fact.grave(i, at) for i, at in graves.items() if known.get(i) is None]
    # A line that is damaged is there: who takes facts that miss for forgotten does not mean it.
    there = page.entries().keys() | graves.keys() | page.damaged()
    alive = [fact.id for fact in known if fact.status is not FactStatus.FORGOTTEN]
    missing = [fact_id for fact_id in alive if fact_id not in there]
    newly = [fact_id for fact_id in missing if fact_id not in parked]
    doubted = not trusted or bool(page.troubles()) or _are_many(len(newly), len(alive))
    return Differences(
        tuple(taken),
        tuple(rewritten),
        tuple(edited),
        tuple(fresh),
        gone=() if doubted else tuple(newly),
        parked=tuple(i for i in missing if doubted or i in parked),
        buried={fact_id: at for fact_id, at in graves.items() if known.alive(fact_id)},
        dead=tuple(dead),
        refused=tuple(refused),
    )


def page_facts(
    page: Page, known: Known, now: datetime, stays: Callable[[Fact], bool]
) -> tuple[Fact, ...]:
    """The rows that the page makes, with those of its missing facts that stay."""
    graves = page.graves()
    facts = {fact_id: Fact.grave(fact_id, at) for fact_id, at in graves.items()}
    for place in page.placed():
        fact_id = place.line.entry.id if place.line.entry else ""
        if fact_id and fact_id not in graves:
            facts[fact_id] = said_by(place, None, now)
    for fact in known:
        if fact.id not in facts and (fact.status is FactStatus.FORGOTTEN or stays(fact)):
            facts[fact.id] = fact
    return tuple(facts.values())


def said_by(place: Placed, row: Fact | None, now: datetime) -> Fact:
    """The fact as its line says it; what is missing there is as in the row, or as is usual."""
    entry = place.line.entry or Entry("")
    until = entry.until or (now if _is_over(place) else None)
    if until and not entry.until and row and row.valid_to:
        until = row.valid_to
    if row is not None:
        entry = replace(
            entry,
            category=entry.category or row.category,
            source=entry.source or row.source,
            confidence=row.confidence if entry.confidence is None else entry.confidence,
            since=entry.since or row.valid_from,
            noted=entry.noted or row.noted_at,
        )
    return replace(entry, until=until).fact(entry.id, now)


def statement(entry: Entry, now: datetime, category: Category | None = None) -> Statement:
    """What a line says that the user wrote by hand."""
    found = claims(entry.text)
    claim = found[0] if len(found) == 1 else None
    usual = claim.category if claim else Category.PERSONAL
    triple = claim.triple if claim else triple_of(entry.text)
    return Statement(entry.text, category or usual, FactSource.FILE, now, triple=triple)


def _is_over(place: Placed) -> bool:
    entry = place.line.entry
    return place.line.part is not Part.NOW or bool(entry and entry.until)


def _are_many(gone: int, all_: int) -> bool:
    return gone > _MANY or (all_ >= _FEW and gone > _SHARE * all_)
