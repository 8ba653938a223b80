"""The answer to a prompt, put together from what the daemon says while it runs and at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# How a turn may end, other than because the model was done, in words for who asked.
ENDINGS: Mapping[object, str] = {
    "cancelled": "cancelled",
    "max_tokens": "the answer was cut at the length limit",
    "max_turn_requests": "the agent stopped: too many steps for one turn",
    "refusal": "the model refused",
}


class Reply:
    """The words of the last assistant message, as they come."""

    def __init__(self) -> None:
        self.text = ""

    def clear(self) -> None:
        """Begin anew: what follows is told from the start."""
        self.text = ""

    def hear(self, params: Mapping[str, Any]) -> None:
        """Take the params of a `session/update`."""
        update = params.get("update") or {}
        marked = marks(params)
        kind = update.get("sessionUpdate")
        if kind == "tool_call" or "agentd/retracted" in marked:
            self.clear()
        elif kind == "agent_message_chunk" and "agentd/notice" not in marked:
            self.text += words(update)

    def turn(self, result: Mapping[str, Any], session: str, message_id: str) -> dict[str, Any]:
        """The finished turn in the shape of `agentd send --json`: the daemon's own account as far as
        its result has one (a long text is left out of it), else what was heard.
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
    """The `_meta` of a `session/update` and of the update in it, as one."""
    inner = (params.get("update") or {}).get("_meta")
    return {**(params.get("_meta") or {}), **(inner or {})}


def words(update: Mapping[str, Any]) -> str:
    """The text of a chunk; "" for other updates."""
    content = update.get("content")
    return str(content.get("text") or "") if isinstance(content, Mapping) else ""
