"""A model that is wrong now and then: one item in ten, in its operation, ids, quote or message
number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, Self

from benchmarks.conversations.model import Message
from benchmarks.conversations.player import Played, Stage

RATE = 0.1
_KINDS = ("op", "ids", "quote", "message")
_INVENTED = "what I told you the other day about it"
_NOWHERE = "zzzz"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One item as it should have been, and as it was. `meant` and `hit` are the sentences of the
    known facts that the one and the other are about.
    """

    kind: str
    right: Json
    wrong: Json
    meant: tuple[str, ...]
    hit: tuple[str, ...]

    @property
    def changes_others(self) -> bool:
        """Whether something else is done than should be, if the item is proven."""
        return _effect(self.right, self.meant) != _effect(self.wrong, self.hit)


@dataclass(slots=True)
class Fallible:
    """Spoils items, the same for the same seed. `mistakes` keeps each, `items` counts all."""

    random: Random
    rate: float = RATE
    items: int = 0
    mistakes: list[Mistake] = field(default_factory=list)

    def spoil(
        self, items: Sequence[Json], messages: Sequence[Message], known: Mapping[str, str]
    ) -> list[Json]:
        """The items, some of them wrong."""
        given = []
        for item in items:
            self.items += 1
            if self.random.random() >= self.rate:
                given.append(item)
                continue
            kind = self.random.choice(_KINDS)
            wrong = self._wrong(kind, item, messages, known)
            meant, hit = (
                tuple(known[i] for i in one.get("ids", ()) if i in known) for one in (item, wrong)
            )
            self.mistakes.append(Mistake(kind, item, wrong, meant, hit))
            given.append(wrong)
        return given

    def _wrong(
        self, kind: str, item: Json, messages: Sequence[Message], known: Mapping[str, str]
    ) -> Json:
        match kind:
            case "op":
                return self._other_op(item, known)
            case "ids":
                return {**item, "ids": self._other_ids(item, known)}
            case "quote":
                users = [m.text for m in messages if m.is_user and m.number != item["message"]]
                return {**item, "quote": self.random.choice([_INVENTED, *users])}
        return {**item, "message": self.random.choice([0, item["message"] + 1, 99])}

    def _other_op(self, item: Json, known: Mapping[str, str]) -> Json:
        ops = [op for op in ("add", "replace", "end", "same") if op != item["op"]]
        if "content" not in item:
            ops = [op for op in ops if op in ("end", "same")]
        return {**item, "op": self.random.choice(ops), "ids": self._other_ids(item, known)}

    def _other_ids(self, item: Json, known: Mapping[str, str]) -> list[str]:
        """Facts that the item is not about, or one that does not exist."""
        others = [fact_id for fact_id in known if fact_id not in item.get("ids", ())]
        return [self.random.choice([*others, _NOWHERE])]


@dataclass(slots=True)
class Undone:
    """What became of the changes that mistakes had made. Some were forgotten since, which nothing
    takes back; on some a later change was built, which is to be taken back first.
    """

    made: int = 0
    restored: int = 0
    forgotten: int = 0
    built_upon: int = 0
    wrong: list[str] = field(default_factory=list)

    def __iadd__(self, other: Undone) -> Self:
        for name in (one.name for one in fields(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


async def take_back(stage: Stage, played: Played, mistakes: Sequence[Mistake]) -> Undone:
    """Undo each change that a mistake has made, the newest first, each by one command."""
    texts = {fact["id"]: fact["text"] for fact in played.facts}
    made = [one for one in played.changes if any(_made(m, one, texts) for m in mistakes)]
    result = Undone(len(made))
    for change in made:
        try:
            await stage.client.call("_agentd/facts/undo", id=change["id"])
        except RuntimeError as error:
            result.forgotten += "forgotten" in str(error)
            result.built_upon += "came after" in str(error)
            result.wrong.append(f"{played.conversation.name}: {error}")
            continue
        now = {fact["id"]: fact["status"] for fact in await stage.known()}
        if now.get(change["new"]) != "active" and all(now[i] == "active" for i in change["old"]):
            result.restored += 1
        else:
            result.wrong.append(f"{played.conversation.name}: not as before: {change}")
    return result


def beyond(played: Played, mistakes: Sequence[Mistake]) -> list[str]:
    """Facts that are not as they should be, though no mistake was about them."""
    about = {text for m in mistakes for text in (m.right.get("content", ""), *m.meant, *m.hit)}
    active, conversation = played.texts("active"), played.conversation
    harmed = [fact for fact in conversation.active() if not any(map(fact.is_said_by, active))]
    for old_id, new_id in conversation.replaced().items():
        old, new = conversation.facts[old_id], conversation.facts[new_id]
        if any(old.is_said_by(text) and not new.is_said_by(text) for text in active):
            harmed += [old] if {old.text, new.text}.isdisjoint(about) else []
    return [fact.text for fact in harmed if fact.text not in about]


def _made(mistake: Mistake, change: Json, texts: Mapping[str, str | None]) -> bool:
    """Whether the change is what the mistake led to."""
    if change["undone"] or not mistake.changes_others:
        return False
    olds = {texts.get(old) for old in change["old"]}
    if change["new"]:
        is_new = texts.get(change["new"]) == mistake.wrong.get("content")
        return is_new and (not olds or not olds.isdisjoint(mistake.hit))
    return change["op"] == "end" and not olds.isdisjoint(mistake.hit)


def _effect(item: Json, concerned: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """What an item does to the facts it concerns: an `add` leaves them alone."""
    match item["op"]:
        case "add":
            return "new", ()
        case "replace":
            return "new", tuple(concerned)
    return item["op"], tuple(concerned)
