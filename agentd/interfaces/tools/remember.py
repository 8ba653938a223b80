"""The tool `remember`: keep a fact that the user stated.

The fact does not come from the calling turn's wording: the user message that the model quotes is
read again, by itself, for facts. Words in it that are not the user's own (a quotation, an
attachment) are kept only after his yes. In a turn that has read text from outside, his message is
read without any context, and other words are refused. Turns that run without him keep nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from agentd.core.errors import ToolFailed
from agentd.core.fact import OperationResult, Refusal
from agentd.core.ports import FactService, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import Approval, ToolCall, ToolOutput
from agentd.core.turn import SessionKind
from agentd.interfaces.tools.fence import printable

_SPEC = ToolSpec(
    "remember",
    "Keep what the user asks to be remembered. text: one sentence; quote: their words, verbatim;"
    " replaces: ids.",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "quote": {"type": "string"},
            "replaces": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    Effect.IDEMPOTENT,
    is_guarded=True,
    is_owners=True,
)
_REFUSED = {
    Refusal.EMPTY: "it says nothing",
    Refusal.FORGOTTEN: "the user had this forgotten",
    Refusal.CREDENTIAL: "it looks like a secret",
    Refusal.TOO_LONG: "it is too long for one fact",
    Refusal.UNKNOWN_ID: "no fact that holds has that id",
    Refusal.UNPROVEN: "the user did not say so",
}


class Remember:
    """Keeps facts. A repeated sentence is one fact, so a call may be repeated."""

    spec = _SPEC

    def __init__(self, facts: FactService) -> None:
        self._facts = facts

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return what was kept and what it replaced. Raises ToolFailed."""
        if call.kind is not SessionKind.OWNER:
            raise ToolFailed("this session cannot keep facts about the owner")
        if call.origin.is_silent:
            raise ToolFailed(
                "this turn runs without the user: it cannot keep facts",
                cure="Put it into today's note with memory_write.",
            )
        quote = str(call.input.get("quote", ""))
        if call.tainted:
            return await self._alone(call, quote)
        text = _one_line(str(call.input["text"]))
        replaces = [str(fact_id) for fact_id in call.input.get("replaces", ())]
        learned = await self._facts.remember(text, call.session, quote, replaces)
        return answer(learned) if learned else await self._ask_and_keep(text, call, host)

    async def _alone(self, call: ToolCall, quote: str) -> ToolOutput:
        """Keep facts of the quoted user message only: text from outside may have chosen the call
        and its words. Raises ToolFailed if the message yields none.
        """
        learned = await self._facts.remember_alone(call.session, quote) if quote else ()
        if not learned:
            raise ToolFailed(
                "this turn has read text from outside: it keeps only what the user said himself",
                cure="Call remember with quote: the user's own words, verbatim.",
            )
        return answer(learned)

    async def _ask_and_keep(self, text: str, call: ToolCall, host: ToolHost) -> ToolOutput:
        if not text:
            return answer([OperationResult(reason=Refusal.EMPTY)])
        if not await host.approve(Approval(f"Remember: “{text}”", _digest(text))):
            return ToolOutput("The user did not want this remembered.", is_error=True)
        return answer(await self._facts.keep_verbatim(text, call.session))


def answer(learned: Sequence[OperationResult]) -> ToolOutput:
    """Return the tool's output for what was learned; an error if every fact was refused."""
    refused = [one.reason for one in learned if one.reason is not None]
    if len(refused) == len(learned):
        why = "; ".join(_REFUSED[reason] for reason in dict.fromkeys(refused))
        return ToolOutput(f"Not kept: {why}.", is_error=True)
    return ToolOutput("\n".join(_line(one) for one in learned if one.reason is None))


def _line(learned: OperationResult) -> str:
    old = " ".join(fact.text for fact in learned.gone)
    if learned.fact is None:
        return f"No longer so: {old}"
    what = "Remembered" if learned.is_new else "Known already"
    return f"{what}: {learned.fact.text}" + (f" It replaces: {old}" if old else "")


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _digest(text: str) -> str:
    return hashlib.sha256(f"remember\0{text}".encode()).hexdigest()
