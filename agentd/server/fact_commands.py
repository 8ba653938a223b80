"""`/remember`, `/forget` and `/undo`: the owner's own words about facts, carried out without a turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from agentd.domain.fact import ErasureReport, Fact, FactStatus, Learned
from agentd.domain.turn import SessionKey
from agentd.errors import InvalidRequest
from agentd.ports import Facts, FactService
from agentd.server.commands import Command
from agentd.server.memory_commands import MemoryCommands, check_owner, wanted
from agentd.server.methods.fact_changes import Changing, TakenBack, take_back
from agentd.server.methods.facts import REFUSED, meant

_MOST = 10  # facts that are listed to choose from
_DIGITS = 18  # of a number that the database can hold
_NEW = {
    FactStatus.ACTIVE: "Remembered",
    FactStatus.PROPOSED: "Waits for your yes (`agentd facts pending`)",
    FactStatus.SUPERSEDED: "Remembered as what was so before",
    FactStatus.ENDED: "Remembered as what is over",
}
_AGAIN = {
    FactStatus.ACTIVE: "Holds again",
    FactStatus.PROPOSED: "Waits for your yes again",
}


class OwnedFacts(FactService, Changing, Protocol):
    """What the owner asks of his facts."""


class FactCommands:
    """Facts first; what no fact says is looked for in the notes."""

    def __init__(self, facts: Facts, service: OwnedFacts, notes: MemoryCommands) -> None:
        self._facts = facts
        self._service = service
        self._notes = notes

    def all(self) -> tuple[Command, ...]:
        """The commands."""
        return (
            Command("remember", "Keep a fact", self._remember, "what to remember"),
            Command("forget", "Erase a fact everywhere", self._forget, "what it says, or its id"),
            Command("undo", "Take back what was learnt here last", self._undo, "a change's number"),
        )

    async def _remember(self, session: SessionKey, text: str) -> str:
        said = wanted(session, text, "/remember my dog is called Rex")
        learned = await self._service.keep(said, session)
        return "\n".join(line for one in learned for line in _learned(one))

    async def _forget(self, session: SessionKey, text: str) -> str:
        said = wanted(session, text, "/forget my dog")
        matches = await self._service.matching(said)
        if named := meant(matches, said):
            report = await self._service.forget([fact.id for fact in named])
            return "\n".join(_erased(report))
        if found := matches.sure or matches.maybe:
            lines = (f"- {fact.text} → /forget {fact.id}" for fact in found[:_MOST])
            return "\n".join(["Which one? Nothing was erased yet.", *lines])
        return await self._notes.named(said)

    async def _undo(self, session: SessionKey, text: str) -> str:
        check_owner(session)
        match text.split():
            case []:
                done = await take_back(self._facts, self._service, session=session)
            case [number] if _is_number(number):
                done = await take_back(self._facts, self._service, int(number))
            case _:
                raise InvalidRequest(
                    f"undo: {text.strip()[:50]!r} is no change's number",
                    cure="`agentd facts changes` has the numbers; /undo alone means the newest here",
                )
        return "\n".join(_taken_back(done))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def _learned(one: Learned) -> Iterator[str]:
    if one.reason is not None:
        yield f"Not remembered: {REFUSED[one.reason]}."
    if one.fact is not None:
        yield _line(_NEW[one.fact.status] if one.is_new else "I know that already", one.fact)
    for old in one.gone:
        if one.fact is not None:
            yield _line("It replaces", old)
        elif old.is_active and old.valid_to is not None:
            yield _line(f"Holds until {old.valid_to:%Y-%m-%d}", old)
        else:
            yield _line("No longer so", old)


def _taken_back(done: TakenBack) -> Iterator[str]:
    for fact in done.removed:
        yield _line("Taken back", fact)
    for fact in done.restored:
        yield _line(_AGAIN.get(fact.status, "As it was before"), fact)


def _erased(report: ErasureReport) -> Iterator[str]:
    """What was done, without the words that are forgotten now, and what the owner can still do."""
    count = sum(report.places.values())
    yield f"Forgotten, in {'one place' if count == 1 else f'{count} places'}."
    if report.also:
        yield "These mention the same and stay; `agentd memory forget` erases what you name:"
        yield from (f"{one.n}. {one.where}: {one.text}" for one in report.also)
    if report.backups:
        yield f"Copies that may still hold it: {', '.join(report.backups)}."
    if report.pending:
        yield f"Still to be erased: {', '.join(report.pending)}."


def _line(head: str, fact: Fact) -> str:
    return f"{head}: {fact.text} ({fact.id})"
