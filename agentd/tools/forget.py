"""The tool `forget`: erase facts about the user for good.

One fact that the user has just asked to be forgotten goes at once. Anything else is shown to him first,
and only what he saw is erased. Once a turn has read text from outside, what is to be forgotten is read
from his last message alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from agentd.domain.fact import Fact
from agentd.domain.prompt import Effect, ToolSpec
from agentd.domain.tool import Approval, Intent, ToolCall, ToolOutput
from agentd.errors import NotFound, ToolFailed
from agentd.ports import FactDesk, Gate
from agentd.tools.remember import own_words

_CHOICE = "Show the user these and ask which, then call forget with its id as the query"
_HIS_CHOICE = "Show the user these, and ask him to send “/forget” with the id of the one he means"
_MOST = 10  # facts that are shown with one question
_SPEC = ToolSpec(
    "forget",
    "Erase facts the user wants forgotten, everywhere. query: words, or an id from a list.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
    Effect.IDEMPOTENT,
)


class Forget:
    """Erases facts; what is gone stays gone, so that a call may be repeated."""

    spec = _SPEC

    def __init__(self, desk: FactDesk) -> None:
        self._desk = desk

    async def run(self, call: ToolCall, gate: Gate) -> ToolOutput:
        """What was erased and where, without saying it again. Raises ToolFailed."""
        own = await own_words(call, self._desk, "forget")
        query = own or str(call.input["query"])
        matches = await self._desk.matching(query)
        found = matches.sure or matches.maybe
        if not found:
            return ToolOutput("No fact says that; nothing was erased.")
        if len(matches.sure) > 1 or len(found) > _MOST:
            return ToolOutput(_listed(found[:_MOST], _HIS_CHOICE if call.tainted else _CHOICE))
        sure = matches.sure[0] if matches.sure else None
        wanted = sure and await self._desk.was_asked_to_forget(call.session, sure)
        if not wanted and not await gate.approve(_approval(found)):
            return ToolOutput("The user wants to keep this.", is_error=True)
        try:
            report = await self._desk.forget([fact.id for fact in found])
        except NotFound:
            return ToolOutput("It was forgotten already.")
        return ToolOutput(report.in_words(len(found)))

    async def settle(self, intent: Intent) -> ToolOutput:
        """Never asked for: an erasure that was cut goes on by itself."""
        raise ToolFailed("forgetting was cut by a restart", cure="Do it again.")


def _listed(facts: Sequence[Fact], choice: str) -> str:
    lines = "\n".join(f"{fact.id}: {fact.text}" for fact in facts)
    return f"More than one fact says that; nothing was erased. {choice}:\n{lines}"


def _approval(facts: Sequence[Fact]) -> Approval:
    texts = "; ".join(f"“{fact.text}”" for fact in facts)
    ids = "\0".join(sorted(fact.id for fact in facts))
    digest = hashlib.sha256(f"forget\0{ids}".encode()).hexdigest()
    return Approval(f"Forget for good: {texts}", digest)
