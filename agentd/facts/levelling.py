"""Turns what the user did to the page into a change of page and rows. Pure."""

from __future__ import annotations

from datetime import datetime

from agentd.domain.fact import Fact, Learned, Refusal
from agentd.facts.annotation import Entry
from agentd.facts.changes import Batch, Change
from agentd.facts.judge import judge
from agentd.facts.page import Placed, Trouble
from agentd.facts.screen import Screen
from agentd.facts.sync import Differences, statement

_REFUSED = {  # what is told, and the cure
    Refusal.EMPTY: ("it says nothing", "take the line out"),
    Refusal.CREDENTIAL: (
        "it holds a password or a key",
        "take the line out, and keep secrets where they belong",
    ),
    Refusal.SUSPICIOUS: (
        "it reads like orders to the agent",
        "say it in plain words of your own, or take the line out",
    ),
}


def levelled(
    found: Differences, batch: Batch, screen: Screen, now: datetime
) -> tuple[Change, tuple[Trouble, ...]]:
    """The change, and the lines that are not taken. `batch` has then all the facts in it."""
    by_hand = _ByHand(batch, screen, now)
    by_hand.refused += [_refusal(*line) for line in found.refused]
    for fact in found.taken:
        batch.put(fact)
    for place, row in found.edited:
        by_hand.edit(place, row)
    for place in found.fresh:
        by_hand.add(place)
    current = {fact.id: fact for fact in batch.facts}
    written = {fact.id: fact for fact in (*found.rewritten, *by_hand.written)}
    change = Change(
        saved=batch.facts,
        written=tuple(current.get(fact.id, fact) for fact in written.values()),
        adopted={index: current.get(f.id, f) for index, f in by_hand.adopted.items()},
        cut=frozenset(by_hand.cut),
        dropped=frozenset(fact.id for fact in found.dead),
        revived=tuple(fact for fact in found.dead if batch.has_grave(fact.text)),
        buried={**dict.fromkeys(found.gone, now), **found.buried},
        sightings=tuple(batch.sightings),
        unburied=tuple(batch.unburied),
        parked=found.parked,
    )
    return change, tuple(by_hand.refused)


class _ByHand:
    """What becomes of the lines that the user wrote or changed."""

    def __init__(self, batch: Batch, screen: Screen, now: datetime) -> None:
        self._batch = batch
        self._screen = screen
        self._now = now
        self.written: list[Fact] = []
        self.adopted: dict[int, Fact] = {}
        self.cut: set[int] = set()
        self.refused: list[Trouble] = []

    def edit(self, place: Placed, row: Fact) -> None:
        """A line has another text: a new fact replaces the one that stood there."""
        entry = self._accepted(place)
        if entry is not None:
            said = statement(entry, self._now, row.category)
            self._batch.spoken(said)
            self._take(place, self._batch.add(said, (row.id,), "", self._now))

    def add(self, place: Placed) -> None:
        """A line has no id yet."""
        entry = self._accepted(place)
        if entry is not None:
            said = statement(entry, self._now)
            judged = judge(said, self._batch.related(said), (), self._batch.is_buried)
            self._take(place, self._batch.take(said, judged, self._now))

    def _take(self, place: Placed, learned: Learned) -> None:
        self.written += learned.superseded
        if learned.fact is None:
            return
        if learned.is_new:
            self.adopted[place.index] = learned.fact
        else:
            self.cut.add(place.index)
            self.written.append(learned.fact)

    def _accepted(self, place: Placed) -> Entry | None:
        entry = place.line.entry
        if entry is not None and (why := self._screen(entry.text)):
            self.refused.append(_refusal(place.number, why))
            return None
        return entry


def _refusal(line: int, why: Refusal) -> Trouble:
    return Trouble(line, *_REFUSED[why])
