"""`_agentd/reload`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from agentd.server.methods.params import NoParams, handler
from agentd.server.peer import Handler


class Outcome(Protocol):
    """What a reload came to."""

    def as_json(self) -> dict[str, Any]:
        """`{changed, needs_restart, missing}`."""


class ReloadMethods:
    """Taking a changed configuration into use."""

    def __init__(self, reload: Callable[[], Awaitable[Outcome]]) -> None:
        self._reload = reload

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"_agentd/reload": handler(NoParams, self._run)}

    async def _run(self, params: NoParams) -> dict[str, Any]:
        return (await self._reload()).as_json()
