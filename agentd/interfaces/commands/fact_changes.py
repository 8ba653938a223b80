"""`facts`, the log of changes: list changes, undo one, and decide about proposed facts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from msgspec import Struct

from agentd.core.errors import InvalidRequest
from agentd.core.fact import FactStatus
from agentd.interfaces.commands import fact_words
from agentd.interfaces.commands.declaration import MODEL_SECONDS, NOTES, Group, Param
from agentd.interfaces.commands.facts import fact_line, refusals
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.core.fact import Fact, FactChange, OperationResult
    from agentd.core.turn import SessionKey

FACT_CHANGES = Group("facts")

_MOST = 500  # changes in one answer, and ids in one question
_DIGITS = 18  # of the largest number that the database can hold
_AGAIN = {
    FactStatus.ACTIVE: "Holds again",
    FactStatus.PROPOSED: "Waits for your yes again",
}
_Ids = Annotated[list[str], Param("Ids that `pending` lists.", length=(1, _MOST))]


class ChangeBook(Protocol):
    """Port: all facts."""

    async def all(self) -> tuple[Fact, ...]:
        """Return every fact; forgotten facts have an id but no text."""


class FactChangeLog(Protocol):
    """Port: the log of changes of facts, and the owner's decisions."""

    async def changes(self, limit: int) -> Sequence[FactChange]:
        """Return the newest `limit` changes, the newest first."""

    async def undo(
        self, change: int | None = None, session: SessionKey | None = None
    ) -> FactChange:
        """Undo a change: the given one, or the newest that can be undone (made in `session`, if
        given). Raises NotFound if there is none, InvalidRequest if the change cannot be undone.
        """

    async def merge(self, keep: str, others: Sequence[str]) -> FactChange:
        """Let the fact `keep` stand for others that say the same. Raises NotFound,
        InvalidRequest.
        """

    async def pending(self) -> Sequence[Fact]:
        """Return the proposed facts."""

    async def accept(self, fact_ids: Sequence[str]) -> Sequence[OperationResult]:
        """Make proposed facts active. Raises NotFound."""

    async def reject(self, fact_ids: Sequence[str]) -> Sequence[Fact]:
        """Drop proposed facts and return them. Raises NotFound."""


class UndoneChange(Struct, frozen=True):
    """An undone change. `removed` are facts that the change had added, which are gone now;
    `restored` are facts that have their earlier state again.
    """

    change: FactChange
    removed: tuple[Fact, ...]
    restored: tuple[Fact, ...]


class ChangeCommands:
    """Commands for the changes of facts and the owner's decisions about facts."""

    def __init__(
        self,
        book: ChangeBook,
        changing: FactChangeLog,
        validate: Callable[[bool], Awaitable[dict[str, Any]]],
    ) -> None:
        """`validate` runs the daily review of all facts; with True it changes nothing and returns
        what it would do.
        """
        self._book = book
        self._changing = changing
        self._validate = validate

    @FACT_CHANGES.command(fields)
    async def changes(
        self, *, limit: Annotated[int, Param("How many.", least=1, most=_MOST)] = 20
    ) -> dict[str, Any]:
        """List what changed in the facts, the newest first."""
        return {"changes": [_json(one) for one in await self._changing.changes(limit)]}

    @FACT_CHANGES.command(fact_words.taken_back)
    async def undo(
        self,
        id: Annotated[
            int | None,
            Param(
                "Its number in `changes`; without, the newest that can be.",
                metavar="CHANGE",
                least=1,
                below=2**63,
            ),
        ] = None,
    ) -> dict[str, Any]:
        """Take a change back: what it brought goes, and what it put aside holds again."""
        done = await self._take_back(id)
        return {
            "change": _json(done.change),
            "removed": [fact.as_json() for fact in done.removed],
            "restored": [fact.as_json() for fact in done.restored],
        }

    @FACT_CHANGES.command(fact_words.merged)
    async def merge(
        self,
        keep: Annotated[str, Param("The id of the fact that stays.")],
        others: Annotated[
            list[str], Param("The ids of those that say the same.", length=(1, _MOST))
        ],
    ) -> dict[str, Any]:
        """Let one fact stand for others that say the same."""
        change = await self._changing.merge(keep, others)
        known = {fact.id: fact for fact in await self._book.all()}
        return {
            "change": _json(change),
            "fact": known[change.new].as_json(),
            "superseded": _facts_json(change.old, known),
        }

    @FACT_CHANGES.command(fact_words.pending)
    async def pending(self) -> dict[str, Any]:
        """List facts that no words of yours prove and that wait for your yes."""
        known = {fact.id: fact for fact in await self._book.all()}
        return {
            "facts": [
                {**fact.as_json(), "replaces": _facts_json(fact.replaces, known)}
                for fact in await self._changing.pending()
            ]
        }

    @FACT_CHANGES.command(fact_words.accepted)
    async def accept(self, ids: _Ids) -> dict[str, Any]:
        """Say yes to facts that wait for it."""
        learned = await self._changing.accept(ids)
        return {
            "facts": [one.fact.as_json() for one in learned if one.fact is not None],
            "superseded": [fact.as_json() for one in learned for fact in one.gone],
            "refused": refusals(learned),
        }

    @FACT_CHANGES.command(fact_words.rejected)
    async def reject(self, ids: _Ids) -> dict[str, Any]:
        """Say no to facts that wait for a yes: they are dropped."""
        return {"facts": [fact.as_json() for fact in await self._changing.reject(ids)]}

    @FACT_CHANGES.command(fact_words.validated, seconds=MODEL_SECONDS)
    async def validate(
        self,
        *,
        dry_run: Annotated[bool, Param("Only say what would be done.", ("--dry-run",))] = False,
    ) -> dict[str, Any]:
        """Look for what is said twice, no longer so, or stale, as it is done once a day, and put it
        aside.
        """
        return await self._validate(dry_run)

    @FACT_CHANGES.slash(
        "undo", "Take back what was learnt here last", "a change's number", owners=NOTES
    )
    async def undo_typed(self, session: SessionKey, text: str) -> str:
        """What is gone, and what holds again.

        Raises InvalidRequest if the text is no change's number.
        """
        match text.split():
            case []:
                done = await self._take_back(session=session)
            case [number] if _is_number(number):
                done = await self._take_back(int(number))
            case _:
                raise InvalidRequest(
                    f"undo: {text.strip()[:50]!r} is no change's number",
                    cure=(
                        "`agentd facts changes` has the numbers; /undo alone means the newest here"
                    ),
                )
        return "\n".join(_taken_back_lines(done))

    async def _take_back(
        self, change_id: int | None = None, session: SessionKey | None = None
    ) -> UndoneChange:
        """Undo a change and return what that did. Raises what `FactChangeLog.undo` raises."""
        before = {fact.id: fact for fact in await self._book.all()}
        change = await self._changing.undo(change_id, session)
        after = {fact.id: fact for fact in await self._book.all()}
        touched = dict.fromkeys((change.new, *change.old))
        return UndoneChange(
            change,
            removed=tuple(before[one] for one in touched if one in before and one not in after),
            restored=tuple(after[one] for one in change.old if one in after),
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def _taken_back_lines(done: UndoneChange) -> Iterator[str]:
    for fact in done.removed:
        yield fact_line("Taken back", fact)
    for fact in done.restored:
        yield fact_line(_AGAIN.get(fact.status, "As it was before"), fact)


def _facts_json(fact_ids: Sequence[str], known: Mapping[str, Fact]) -> list[dict[str, Any]]:
    return [known[fact_id].as_json() for fact_id in fact_ids if fact_id in known]


def _json(change: FactChange) -> dict[str, Any]:
    """Return a change in the shape of `agentd facts changes`."""
    return {
        "id": change.id,
        "at": change.at.isoformat(),
        "session": change.session or None,
        "op": str(change.op),
        "new": change.new or None,
        "old": list(change.old),
        "undone": change.undone,
    }
