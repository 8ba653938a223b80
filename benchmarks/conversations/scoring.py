"""What is right and what is wrong with what is known at the end of conversations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Self

from benchmarks.conversations.conversation import Conversation, Expected, fits
from benchmarks.conversations.player import Played


@dataclass(slots=True)
class Score:
    """Counts over conversations; `wrong` says in words what counts against the result."""

    facts: int = 0
    found: int = 0
    asked: int = 0  # facts that the user asked to be kept
    kept: int = 0
    updates: int = 0
    updated: int = 0
    ended: int = 0
    still_held: int = 0
    distractors: int = 0
    lured: int = 0
    forgets: int = 0
    known_still: int = 0
    left: int = 0  # places with words of a forgotten fact
    mentioned: int = 0  # places with its canary, the user's request among them
    twice: int = 0
    proposed: int = 0
    others: int = 0  # active sentences that nobody listed
    wrong: list[str] = field(default_factory=list)

    def __iadd__(self, other: Score) -> Self:
        for name in (one.name for one in fields(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def blame(self, played: Played, what: str, text: str) -> None:
        """One line of what is wrong."""
        self.wrong.append(f"{played.conversation.name}: {what}: {text}")


def score(several: Iterable[Played]) -> Score:
    """All counts."""
    total = Score()
    for played in several:
        conversation, active = played.conversation, played.texts("active")
        _count_known(total, played, active)
        _count_updates(total, played, active)
        _count_ended(total, played, active)
        _count_distractors(total, played, active)
        _count_forgotten(total, played)
        total.proposed += len(played.texts("proposed"))
        for text in active:
            if not any(fact.is_said_by(text) for fact in conversation.active()):
                total.others += 1
    return total


def _count_known(total: Score, played: Played, active: list[str]) -> None:
    conversation = played.conversation
    wanted, asked = conversation.active(), conversation.asked_to_keep()
    for fact in wanted:
        saying = [text for text in active if fact.is_said_by(text)]
        total.facts += 1
        total.found += bool(saying)
        if fact.id in asked:
            total.asked += 1
            total.kept += bool(saying)
        if not saying:
            total.blame(played, "missing", fact.text)
        alone = [text for text in saying if _says_only(text, fact, conversation)]
        if len(alone) > 1:
            total.twice += len(alone) - 1
            total.blame(played, "twice", " | ".join(alone))


def _count_updates(total: Score, played: Played, active: list[str]) -> None:
    conversation = played.conversation
    for old_id, new_id in conversation.replaced().items():
        old, new = conversation.facts[old_id], conversation.facts[new_id]
        is_new = any(new.is_said_by(text) for text in active)
        stale = [text for text in active if old.is_said_by(text) and not new.is_said_by(text)]
        total.updates += 1
        total.updated += is_new and not stale
        if stale:
            total.blame(played, "still current", stale[0])


def _count_ended(total: Score, played: Played, active: list[str]) -> None:
    for fact_id in played.conversation.ended():
        fact = played.conversation.facts[fact_id]
        total.ended += 1
        if any(fact.is_said_by(text) for text in active):
            total.still_held += 1
            total.blame(played, "has ended", fact.text)


def _count_distractors(total: Score, played: Played, active: list[str]) -> None:
    for turn in played.conversation.turns():
        for words in turn.never:
            total.distractors += 1
            lures = [text for text in active if fits(text, (words,))]
            if lures:
                total.lured += 1
                total.blame(played, "nobody said", lures[0])


def _count_forgotten(total: Score, played: Played) -> None:
    told = [fact["text"] for fact in played.facts if fact["text"]]
    for fact_id in played.conversation.forgotten():
        fact = played.conversation.facts[fact_id]
        total.forgets += 1
        if any(fact.is_said_by(text) for text in told):
            total.known_still += 1
            total.blame(played, "was to be forgotten", fact.text)
    total.left += len(played.left)
    total.mentioned += len(played.mentions)
    for place in played.left:
        total.blame(played, "left behind", place)


def _says_only(text: str, fact: Expected, conversation: Conversation) -> bool:
    said = [other for other in conversation.active() if other.is_said_by(text)]
    return said == [fact]
