"""The status line below the prompt: session, model, fill of the context, cost, problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentd.core.errors import AgentdError
from agentd.interfaces.client.conversation import Conversation
from agentd.interfaces.commands.plain import counted, spent, visible

_PATIENCE = 10.0  # seconds


class StatusLine:
    """The session's status line, fetched again on request."""

    def __init__(self) -> None:
        self._session = ""
        self._status: Mapping[str, Any] = {}
        self._wanted = asyncio.Event()

    def text(self, columns: int) -> str:
        """Return the status line, at most `columns` wide."""
        return visible(status_text(self._status, self._session, columns))

    def want(self) -> None:
        """Request that the status be fetched again."""
        self._wanted.set()

    async def keep(self, conversation: Conversation, changed: Callable[[], None]) -> None:
        """Fetch the status at each request, until cancelled; call `changed` after each."""
        self._session, self._status = conversation.session, {}
        self.want()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                self._status = await conversation.call("_agentd/status", within=_PATIENCE)
            except AgentdError:
                continue  # keep the old status; the loss of the daemon is reported elsewhere
            changed()


def status_text(status: Mapping[str, Any], session: str, columns: int) -> str:
    """Return the session, the provider, the used part of the window, today's cost and problems. If
    that is wider than `columns`, parts are left out, the provider first and problems never.
    """
    parts = {
        "session": session,
        "provider": _provider(status.get("provider") or {}),
        "context": _context(status, session),
        "cost": _cost(status.get("cost") or {}, status.get("provider") or {}),
        "problems": _problems(status.get("problems") or []),
    }
    for least in ("provider", "context", "cost", "session"):
        if len(_joined(parts)) > columns:
            del parts[least]
    return _joined(parts)[:columns]


def _joined(parts: Mapping[str, str]) -> str:
    return " · ".join(part for part in parts.values() if part)


def _provider(provider: Mapping[str, Any]) -> str:
    return "/".join(
        dict.fromkeys(str(provider[name]) for name in ("kind", "model") if provider.get(name))
    )


def _context(status: Mapping[str, Any], session: str) -> str:
    window = (status.get("provider") or {}).get("effective_window") or 0
    if not window:
        return ""
    known = [one for one in status.get("sessions") or [] if one.get("key") == session]
    used = known[0].get("context_tokens") or 0 if known else 0
    return f"context {used / window:.0%}"


def _cost(cost: Mapping[str, Any], provider: Mapping[str, Any]) -> str:
    """Return today's cost in words; "" for the offline provider, whose tokens cost nothing."""
    if "today_usd" not in cost or (provider.get("kind") == "offline" and not cost["today_usd"]):
        return ""
    return f"today {spent(cost['today_usd'], cost.get('today_tokens', 0))}"


def _problems(problems: Sequence[Any]) -> str:
    return f"{counted(len(problems), 'problem')}: see `agentd status`" if problems else ""
