"""Compares the page of facts with the rows: what the user changed, and what follows for both. Pure.

A line without an id is a new fact, a line with another text a new version of its fact; a fact whose
line is gone is forgotten, unless many lines are gone at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.fact import (
    Category,
    ChangeKind,
    Evidence,
    Fact,
    FactOperation,
    FactSource,
    FactStatus,
    FactWrite,
    ForgetRequest,
    OperationKind,
    OperationResult,
    Refusal,
)
from agentd.memory.facts import operations
from agentd.memory.facts.draft import Draft
from agentd.memory.facts.known import Known
from agentd.memory.facts.page import Page, PagePart, PlacedLine, UnreadableLine
from agentd.memory.facts.page_entry import PageEntry

Screen = Callable[[str], Refusal | None]

_MANY = 5  # if more lines than this are missing at once, none counts as deleted;
_SHARE = 0.2  # likewise for more than this share of all lines, unless it is a single line
_REFUSED = {  # reason and cure
    Refusal.EMPTY: ("it says nothing", "take the line out"),
    Refusal.CREDENTIAL: (
        "it holds a password or a key",
        "take the line out, and keep secrets where they belong",
    ),
}


class PageChange(Struct, frozen=True):
    """One step from a state of page and rows to the next. `write` is for the rows, `written` are
    facts whose lines are written. Lines without an id are given by index: `adopted` ones become the
    fact's line, `cut` ones are deleted. `dropped` are ids whose lines are deleted. `revived` are
    forgotten facts found on the page again: their words may have been copied elsewhere, so they are
    erased once more.
    """

    write: FactWrite = field(default_factory=FactWrite)
    written: tuple[Fact, ...] = ()
    adopted: Mapping[int, Fact] = field(default_factory=dict)
    cut: frozenset[int] = frozenset()
    dropped: frozenset[str] = frozenset()
    revived: tuple[Fact, ...] = ()
    buried: Mapping[str, datetime] = field(default_factory=dict)
    also: tuple[int, ...] = ()  # numbers of mentions to erase, too
    asked: tuple[ForgetRequest, ...] = ()  # the requests to forget

    @property
    def is_of_page(self) -> bool:
        """Whether lines of the page change."""
        return bool(self.written or self.adopted or self.cut or self.dropped or self.buried)

    def after(self, known: Known) -> Known:
        """Return the state of the facts after the change."""
        dead = [Fact.tombstone(i, at) for i, at in self.buried.items() if known.alive(i)]
        write = self.write
        return known.after((*write.facts, *dead), write.removed, write.parked)


class Differences(Struct, frozen=True):
    """How the page differs from the rows."""

    taken: tuple[Fact, ...] = ()  # facts in the state that the page gives
    rewritten: tuple[Fact, ...] = ()  # those of them whose lines are incomplete
    edited: tuple[tuple[PlacedLine, Fact], ...] = ()  # another text under the id of a fact
    fresh: tuple[PlacedLine, ...] = ()  # lines without an id
    gone: tuple[str, ...] = ()  # facts whose lines the user deleted
    parked: tuple[str, ...] = ()  # facts whose lines are missing, but not surely deleted
    buried: Mapping[str, datetime] = field(default_factory=dict)  # forgotten on the page alone
    dead: tuple[Fact, ...] = ()  # forgotten facts that are on the page again
    # lines with unknown ids, and why they are refused
    refused: tuple[tuple[int, Refusal], ...] = ()


def settle_copies(page: Page, known: Known, now: datetime) -> Page:
    """Resolve duplicate ids on the page: the line that best fits the row counts, wherever it is."""

    def fits(place: PlacedLine) -> int:
        entry = place.line.entry
        row = known.get(entry.id) if entry else None
        if entry is None or row is None or entry.text != row.text:
            return 0
        return 2 if fact_of_line(place, row, now).status is row.status else 1

    return page.settled(fits)


def compare(
    page: Page, known: Known, now: datetime, screen: Screen, *, trusted: bool
) -> Differences:
    """Return the differences between page and rows. Unless the page is `trusted`, no missing line
    counts as deleted. Lines with unknown ids are screened, unless there are no rows at all: then
    the rows are made from the page.
    """
    taken, rewritten, edited, fresh, dead, refused = [], [], [], [], [], []
    tombstones = page.tombstones()
    for place in page.placed():
        entry = place.line.entry
        if entry is None:
            continue
        row = known.get(entry.id) if entry.id else None
        if not entry.id:
            fresh.append(place)
        elif entry.id in tombstones or (row and not row.is_alive):
            dead.append(fact_of_line(place, None, now))
        elif row and row.is_active and not _is_over(place, now) and entry.text != row.text:
            edited.append((place, row))
        elif row is None and len(known) and (why := screen(entry.text)):
            refused.append((place.number, why))
        else:
            said = fact_of_line(place, row, now)
            if said != row:
                taken.append(said)
            if not entry.is_complete or entry.status(now) is not said.status:
                rewritten.append(said)
    taken += [Fact.tombstone(i, at) for i, at in tombstones.items() if known.get(i) is None]
    # A damaged line counts as present: whoever deletes lines to forget facts does not damage them.
    there = page.entries().keys() | tombstones.keys() | page.damaged()
    alive = [fact.id for fact in known if fact.is_alive]
    missing = [fact_id for fact_id in alive if fact_id not in there]
    newly = [fact_id for fact_id in missing if fact_id not in known.parked]
    doubted = not trusted or bool(page.troubles()) or _are_many(len(newly), len(alive))
    return Differences(
        tuple(taken),
        tuple(rewritten),
        tuple(edited),
        tuple(fresh),
        gone=() if doubted else tuple(newly),
        parked=tuple(i for i in missing if doubted or i in known.parked),
        buried={fact_id: at for fact_id, at in tombstones.items() if known.alive(fact_id)},
        dead=tuple(dead),
        refused=tuple(refused),
    )


def reconcile(
    found: Differences, draft: Draft, screen: Screen
) -> tuple[PageChange, tuple[UnreadableLine, ...]]:
    """Return the change that follows from the differences, and the refused lines. It is made in the
    draft.
    """
    now = draft.context.now
    by_hand = _ByHand(draft, screen)
    by_hand.refused += [_refusal(*line) for line in found.refused]
    for fact in found.taken:
        by_hand.take(fact)
    for place, row in found.edited:
        by_hand.edit(place, row)
    for place in found.fresh:
        by_hand.add(place)
    buried = {**dict.fromkeys(found.gone, now), **found.buried}
    if buried:
        alive = [one for i in buried if (one := draft.alive(i)) is not None]
        draft.record(ChangeKind.FORGET, "", alive)
    current = {fact.id: fact for fact in draft.facts()}
    written = {fact.id: fact for fact in (*found.rewritten, *by_hand.written)}
    parked = found.parked if found.parked != draft.before.parked else None
    is_buried = draft.context.tombstones.is_buried
    change = PageChange(
        write=replace(draft.write(), parked=parked),
        written=tuple(current.get(fact.id, fact) for fact in written.values()),
        adopted={index: current.get(f.id, f) for index, f in by_hand.adopted.items()},
        cut=frozenset(by_hand.cut),
        dropped=frozenset(fact.id for fact in found.dead),
        revived=tuple(fact for fact in found.dead if is_buried(fact.text, fact.noted_at)),
        buried=buried,
    )
    return change, tuple(by_hand.refused)


def page_facts(
    page: Page, known: Known, now: datetime, stays: Callable[[Fact], bool]
) -> tuple[Fact, ...]:
    """Return the rows that follow from the page, plus missing facts that stay."""
    tombstones = page.tombstones()
    facts = {fact_id: Fact.tombstone(fact_id, at) for fact_id, at in tombstones.items()}
    for place in page.placed():
        fact_id = place.line.entry.id if place.line.entry else ""
        if fact_id and fact_id not in tombstones:
            facts[fact_id] = fact_of_line(place, None, now)
    for fact in known:
        if fact.id not in facts and (not fact.is_alive or stays(fact)):
            facts[fact.id] = fact
    return tuple(facts.values())


def fact_of_line(place: PlacedLine, row: Fact | None, now: datetime) -> Fact:
    """Return the fact as its line states it; missing fields come from the row, else from
    defaults.
    """
    entry = place.line.entry or PageEntry("")
    is_over = _is_over(place, now)
    until = entry.until or (now if is_over else None)
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
    # Moving its line up is the user's acceptance of a proposed fact.
    is_proposed = entry.is_proposed and place.line.part is PagePart.PROPOSED
    return replace(entry, until=until, is_proposed=is_proposed).fact(entry.id, now)


class _ByHand:
    """Applies the lines that the user wrote or changed."""

    def __init__(self, draft: Draft, screen: Screen) -> None:
        self._draft = draft
        self._screen = screen
        self.written: list[Fact] = []
        self.adopted: dict[int, Fact] = {}
        self.cut: set[int] = set()
        self.refused: list[UnreadableLine] = []

    def take(self, fact: Fact) -> None:
        """Apply a line that differs from its row; a proposed fact that the page shows as active is
        accepted.
        """
        row = self._draft.get(fact.id)
        if row is None or row.status is not FactStatus.PROPOSED or not fact.is_active:
            self._draft.put(fact)
            return
        learned = operations.accept(self._draft, replace(fact, status=row.status))
        self.written += [sure for sure in (learned.fact, *learned.gone) if sure is not None]

    def edit(self, place: PlacedLine, row: Fact) -> None:
        """Apply a line with a new text: a new fact replaces the old one."""
        entry = self._accepted(place)
        if entry is not None:
            self._take(place, operations.edit(self._draft, row, self._edited(entry, row)))

    def add(self, place: PlacedLine) -> None:
        """Apply a line without an id: a new fact."""
        entry = self._accepted(place)
        if entry is not None:
            self._take(
                place, operations.apply(self._draft, self._operation(entry, Category.PERSONAL))
            )

    def _operation(self, entry: PageEntry, category: Category) -> FactOperation:
        """Return the operation for a line written by hand."""
        now = self._draft.context.now
        words = (Evidence(now),)
        return FactOperation(
            OperationKind.ADD, now, FactSource.FILE, entry.text, category, evidence=words
        )

    def _edited(self, entry: PageEntry, row: Fact) -> FactOperation:
        """Return the operation for an edited line. Values changed in its comment count; unchanged
        ones that belonged to the old words (triple, start, confidence) do not.
        """
        changed = entry.since if entry.since != row.valid_from else None
        sure = entry.confidence if entry.confidence != row.confidence else None
        return replace(
            self._operation(entry, entry.category or row.category),
            triple=entry.triple if entry.triple != row.triple else None,
            valid_from=changed,
            valid_to=entry.until,
            confidence=sure,
        )

    def _take(self, place: PlacedLine, learned: OperationResult) -> None:
        self.written += learned.gone
        if learned.fact is None:
            return
        if learned.is_new:
            self.adopted[place.index] = learned.fact
        else:
            self.cut.add(place.index)
            self.written.append(learned.fact)

    def _accepted(self, place: PlacedLine) -> PageEntry | None:
        entry = place.line.entry
        if entry is not None and (why := self._screen(entry.text)):
            self.refused.append(_refusal(place.number, why))
            return None
        return entry


def _refusal(line: int, why: Refusal) -> UnreadableLine:
    return UnreadableLine(line, *_REFUSED[why])


def _is_over(place: PlacedLine, now: datetime) -> bool:
    """Whether the line says that its fact no longer holds."""
    entry, part = place.line.entry, place.line.part
    ended = bool(entry and entry.until and entry.until <= now)
    return part in (PagePart.EARLIER, PagePart.FORGOTTEN) or ended


def _are_many(gone: int, all_: int) -> bool:
    return gone > _MANY or (gone > 1 and gone > _SHARE * all_)
