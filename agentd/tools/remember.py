"""The tool `remember`: keep one fact about the user.

Facts are the user's own words. What he did not say in this conversation is kept only after he has
seen the very sentence and allowed it. Turns that run without him keep nothing; those that have read text
from outside keep what his last message asks for, in his words, whatever the model makes of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from agentd.domain.fact import Learned, Refusal
from agentd.domain.prompt import Effect, ToolSpec
from agentd.domain.tool import Approval, Intent, ToolCall, ToolOutput
from agentd.domain.turn import Kind as SessionKind
from agentd.domain.turn import Origin
from agentd.errors import ToolFailed
from agentd.ports import FactDesk, Gate
from agentd.statements.explicit import Kind
from agentd.tools.fence import printable

_SPEC = ToolSpec(
    "remember",
    "Keep one lasting fact the user told you, as a full sentence. Replaces what it contradicts.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    Effect.IDEMPOTENT,
)
_REFUSED = {
    Refusal.AUTHORITY: "the user himself said otherwise, and that was kept",
    Refusal.EMPTY: "it says nothing",
    Refusal.FORGOTTEN: "the user had this forgotten",
    Refusal.CREDENTIAL: "it looks like a secret",
    Refusal.SUSPICIOUS: "it reads like an instruction to the model",
    Refusal.TOO_LONG: "it is too long for one fact",
}
_VERBS: Final[Mapping[Kind, str]] = {"remember": "keep", "forget": "erase"}
_INSTEAD: Final[Mapping[Kind, str]] = {
    "remember": "Put it into today's note with memory_write.",
    "forget": "Ask the user to send “/forget …” himself.",
}


class Remember:
    """Keeps facts; the same sentence twice is one fact, so that a call may be repeated."""

    spec = _SPEC

    def __init__(self, desk: FactDesk) -> None:
        self._desk = desk

    async def run(self, call: ToolCall, gate: Gate) -> ToolOutput:
        """What was kept, and what it replaced. Raises ToolFailed."""
        own = await own_words(call, self._desk, "remember")
        text = " ".join(printable(own or str(call.input["text"])).split())
        if own is None and not await self._desk.was_said(text, call.session):
            approval = Approval(f"Remember: “{text}”", _digest(text))
            if not await gate.approve(approval):
                return ToolOutput("The user did not want this remembered.", is_error=True)
        return told(await self._desk.remember(text, session=call.session))

    async def settle(self, intent: Intent) -> ToolOutput:
        """Never asked for: a call that is repeated finds its fact."""
        raise ToolFailed("remembering was cut by a restart", cure="Do it again.")


async def own_words(call: ToolCall, desk: FactDesk, kind: Kind) -> str | None:
    """The words of the owner's last message that count in place of the model's, since the turn has read
    text from outside; None where the model's count. Raises ToolFailed unless the owner's own turn asks,
    and, after text from outside, he himself does.
    """
    verb = _VERBS[kind]
    if call.kind is not SessionKind.MAIN:
        msg = f"this session cannot {verb} facts about the owner"
        raise ToolFailed(msg)
    if call.origin is not Origin.USER:
        msg = f"this turn runs without the user: it cannot {verb} facts"
        raise ToolFailed(msg, cure=_INSTEAD[kind])
    if not call.tainted:
        return None
    asked = await desk.asked_last(call.session)
    if asked is None or asked.kind != kind:
        msg = f"this turn has read text from outside: it cannot {verb} facts unasked"
        raise ToolFailed(msg, cure=_INSTEAD[kind])
    return asked.text


def told(learned: Learned) -> ToolOutput:
    """The answer in words."""
    if learned.reason is not None:
        return ToolOutput(f"Not kept: {_REFUSED[learned.reason]}.", is_error=True)
    assert learned.fact is not None
    if not learned.is_new:
        return ToolOutput(f"Known already: {learned.text}")
    old = "".join(f" It replaces: {fact.text}" for fact in learned.superseded)
    return ToolOutput(f"Remembered: {learned.text}{old}")


def _digest(text: str) -> str:
    return hashlib.sha256(f"remember\0{text}".encode()).hexdigest()
