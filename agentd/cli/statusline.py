"""The line below the prompt: where one is, who answers, how full the context is, what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agentd.cli.plain import counted, spent, visible
from agentd.client.conversation import Conversation
from agentd.errors import AgentdError

_PATIENCE = 10.0  # seconds


class StatusLine:
    """Words about the session, fetched again whenever that was asked for."""

    def __init__(self) -> None:
        self.text = ""
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """Something may have changed."""
        self._wanted.set()

    async def keep(self, conversation: Conversation, changed: Callable[[], None]) -> None:
        """Bring the words up to date until cancelled."""
        self.text = visible(conversation.session)
        self.want()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                status = await conversation.call("_agentd/status", within=_PATIENCE)
            except AgentdError:
                continue  # what the user sees stays; whoever has lost the daemon tells that
            self.text = visible(worded(status, conversation.session))
            changed()


def worded(status: Mapping[str, Any], session: str) -> str:
    """The session, the provider, how much of the window is in use, and today's cost."""
    provider = status.get("provider") or {}
    names = dict.fromkeys(str(provider[name]) for name in ("kind", "model") if provider.get(name))
    parts = [session, "/".join(names)]
    known = [one for one in status.get("sessions") or [] if one.get("key") == session]
    window = provider.get("effective_window") or 0
    if window:
        used = known[0].get("context_tokens") or 0 if known else 0
        parts.append(f"context {used / window:.0%}")
    if "today_usd" in (cost := status.get("cost") or {}):
        parts.append(f"today {spent(cost['today_usd'], cost.get('today_tokens', 0))}")
    if count := len(status.get("problems") or []):
        parts.append(f"{counted(count, 'problem')}: see `agentd status`")
    return " · ".join(part for part in parts if part)
