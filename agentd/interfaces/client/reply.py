"""Assembles the answer to a prompt from the updates during the turn and the result at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The stop reasons other than the model's own end, in words for the user.
ENDINGS: Mapping[object, str] = {
    "cancelled": "cancelled",
    "max_tokens": "the answer was cut at the length limit",
    "max_turn_requests": "the agent stopped: too many steps for one turn",
    "refusal": "the model refused",
}


class Reply:
    """The text of the last assistant message, as it arrives."""

    def __init__(self) -> None:
        self.text = ""

    def clear(self) -> None:
        """Drop the text: the message starts again."""
        self.text = ""

    def hear(self, params: Mapping[str, Any]) -> None:
        """Add the text of a `session/update`; clear the text when a tool call begins or text is
        retracted.
        """
        update = params.get("update") or {}
        marked = marks(params)
        kind = update.get("sessionUpdate")
        if kind == "tool_call" or "agentd/retracted" in marked:
            self.clear()
        elif kind == "agent_message_chunk" and "agentd/notice" not in marked:
            self.text += words(update)

    def turn(self, result: Mapping[str, Any], session: str, message_id: str) -> dict[str, Any]:
        """Return the finished turn in the shape of `agentd send --json`: from the daemon's result
        where that has the values (it omits a long text), else from the updates.
        """
        meta = result.get("_meta") or {}
        told = meta.get("agentd/turn") or {}
        return {
            "session": session,
            "message_id": message_id,
            "text": meta.get("agentd/text", self.text),
            "stop_reason": result.get("stopReason"),
            "usage": meta.get("agentd/usage") or {},
            "tool_calls": meta.get("agentd/toolCalls") or [],
            **told,
        }


def marks(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of a `session/update` merged with that of the update in it."""
    inner = (params.get("update") or {}).get("_meta")
    return {**(params.get("_meta") or {}), **(inner or {})}


def words(update: Mapping[str, Any]) -> str:
    """Return the text of a chunk; "" for other updates."""
    content = update.get("content")
    return str(content.get("text") or "") if isinstance(content, Mapping) else ""
