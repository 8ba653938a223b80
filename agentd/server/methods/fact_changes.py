"""`_agentd/facts/*` on what changed: the list of changes, taking one back, and the owner's decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field

from agentd.domain.fact import Fact, FactChange, Learned
from agentd.domain.turn import SessionKey
from agentd.ports import Facts
from agentd.server.methods.facts import refusals
from agentd.server.methods.params import NoParams, Params, handler
from agentd.server.peer import Handler

_MOST = 500  # changes in one answer, and ids in one question


class Changing(Protocol):
    """The changes of what is known, and what the owner decides about them."""

    async def changes(self, limit: int) -> Sequence[FactChange]:
        """The newest first."""

    async def undo(
        self, change: int | None = None, session: SessionKey | None = None
    ) -> FactChange:
        """Take a change back: that one, or the newest that can be (told in `session`, if given). Raises
        NotFound where nothing is left, InvalidRequest where it cannot be taken back.
        """

    async def merge(self, keep: str, others: Sequence[str]) -> FactChange:
        """Let one fact stand for others that say the same. Raises NotFound, InvalidRequest."""

    async def pending(self) -> Sequence[Fact]:
        """Proposed facts."""

    async def accept(self, fact_ids: Sequence[str]) -> Sequence[Learned]:
        """Let proposed facts hold. Raises NotFound."""

    async def reject(self, fact_ids: Sequence[str]) -> Sequence[Fact]:
        """Drop proposed facts; gives them as they were. Raises NotFound."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A change that was taken back. `removed` are facts that it had brought and that are gone as if they
    had never been learnt, `restored` those that are again what they were before it.
    """

    change: FactChange
    removed: tuple[Fact, ...]
    restored: tuple[Fact, ...]


class ChangesParams(Params):
    """How many."""

    limit: int = Field(20, ge=1, le=_MOST)


class UndoParams(Params):
    """The number of a change; None: the newest that can be taken back."""

    id: int | None = Field(None, ge=1, lt=2**63)


class MergeParams(Params):
    """Ids of facts."""

    keep: str
    others: list[str] = Field(min_length=1, max_length=_MOST)


class DecideParams(Params):
    """Ids of proposed facts."""

    ids: list[str] = Field(min_length=1, max_length=_MOST)


class ChangeMethods:
    """Changes of facts for commands."""

    def __init__(self, facts: Facts, changing: Changing) -> None:
        self._facts = facts
        self._changing = changing

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/facts/changes": handler(ChangesParams, self._changes),
            "_agentd/facts/undo": handler(UndoParams, self._undo),
            "_agentd/facts/merge": handler(MergeParams, self._merge),
            "_agentd/facts/pending": handler(NoParams, self._pending),
            "_agentd/facts/accept": handler(DecideParams, self._accept),
            "_agentd/facts/reject": handler(DecideParams, self._reject),
        }

    async def _changes(self, params: ChangesParams) -> dict[str, Any]:
        return {"changes": [_json(one) for one in await self._changing.changes(params.limit)]}

    async def _undo(self, params: UndoParams) -> dict[str, Any]:
        done = await take_back(self._facts, self._changing, params.id)
        return {
            "change": _json(done.change),
            "removed": [fact.as_json() for fact in done.removed],
            "restored": [fact.as_json() for fact in done.restored],
        }

    async def _merge(self, params: MergeParams) -> dict[str, Any]:
        change = await self._changing.merge(params.keep, params.others)
        known = {fact.id: fact for fact in await self._facts.all()}
        return {
            "change": _json(change),
            "fact": known[change.new].as_json(),
            "superseded": _named(change.old, known),
        }

    async def _pending(self, params: NoParams) -> dict[str, Any]:
        """Each with the facts that a yes to it puts aside, as `replaces`."""
        known = {fact.id: fact for fact in await self._facts.all()}
        return {
            "facts": [
                {**fact.as_json(), "replaces": _named(fact.replaces, known)}
                for fact in await self._changing.pending()
            ]
        }

    async def _accept(self, params: DecideParams) -> dict[str, Any]:
        learned = await self._changing.accept(params.ids)
        return {
            "facts": [one.fact.as_json() for one in learned if one.fact is not None],
            "superseded": [fact.as_json() for one in learned for fact in one.gone],
            "refused": refusals(learned),
        }

    async def _reject(self, params: DecideParams) -> dict[str, Any]:
        return {"facts": [fact.as_json() for fact in await self._changing.reject(params.ids)]}


async def take_back(
    facts: Facts,
    changing: Changing,
    change_id: int | None = None,
    session: SessionKey | None = None,
) -> TakenBack:
    """Take a change back and tell what that did. Raises what `Changing.undo` raises."""
    before = {fact.id: fact for fact in await facts.all()}
    change = await changing.undo(change_id, session)
    after = {fact.id: fact for fact in await facts.all()}
    touched = dict.fromkeys((change.new, *change.old))
    return TakenBack(
        change,
        removed=tuple(before[one] for one in touched if one in before and one not in after),
        restored=tuple(after[one] for one in change.old if one in after),
    )


def _named(fact_ids: Sequence[str], known: Mapping[str, Fact]) -> list[dict[str, Any]]:
    return [known[fact_id].as_json() for fact_id in fact_ids if fact_id in known]


def _json(change: FactChange) -> dict[str, Any]:
    """The shape in `agentd facts changes`."""
    return {
        "id": change.id,
        "at": change.at.isoformat(),
        "session": change.session or None,
        "op": str(change.op),
        "new": change.new or None,
        "old": list(change.old),
        "undone": change.undone,
    }
