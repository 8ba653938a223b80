"""`/remember` and `/forget`: the owner's own words about facts, without a model."""

from __future__ import annotations

from agentd.domain.fact import Fact
from agentd.domain.turn import SessionKey
from agentd.errors import NotFound
from agentd.ports import FactDesk
from agentd.server.commands import Command
from agentd.server.memory_commands import MemoryCommands, wanted
from agentd.server.methods.facts import REFUSED

_MOST = 10  # facts that are listed to choose from


class FactCommands:
    """Facts first; what no fact says is looked for in the notes."""

    def __init__(self, desk: FactDesk, notes: MemoryCommands) -> None:
        self._desk = desk
        self._notes = notes

    def all(self) -> tuple[Command, ...]:
        """Both commands."""
        return (
            Command("remember", "Keep a fact", self._remember, "what to remember"),
            Command("forget", "Erase a fact everywhere", self._forget, "what it says, or its id"),
        )

    async def _remember(self, session: SessionKey, text: str) -> str:
        said = wanted(session, text, "/remember my dog is called Rex")
        learned = await self._desk.remember(said, session=session)
        if learned.reason is not None:
            return f"Not remembered: {REFUSED[learned.reason]}."
        assert learned.fact is not None
        if not learned.is_new:
            return f"I know that already: {learned.text}"
        lines = [f"I'll remember that: {learned.text}"]
        lines += [f"It replaces: {fact.text}" for fact in learned.superseded]
        return "\n".join(lines)

    async def _forget(self, session: SessionKey, text: str) -> str:
        said = wanted(session, text, "/forget my dog")
        matches = await self._desk.matching(said)
        if len(matches.sure) == 1:
            return await self._erased(matches.sure[0])
        if found := matches.sure or matches.maybe:
            lines = (f"- {fact.text} → /forget {fact.id}" for fact in found[:_MOST])
            return "\n".join(["Which one? Nothing was erased yet.", *lines])
        return await self._notes.named(said)

    async def _erased(self, fact: Fact) -> str:
        try:
            return (await self._desk.forget([fact.id])).in_words(1)
        except NotFound:
            return "It was forgotten already."
