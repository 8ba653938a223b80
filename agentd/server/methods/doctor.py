"""`_agentd/doctor`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agentd.domain.health import Finding
from agentd.server.methods.params import NoParams, handler
from agentd.server.peer import Handler


class DoctorMethods:
    """The checks that only the daemon can make."""

    def __init__(self, examine: Callable[[], Awaitable[Sequence[Finding]]]) -> None:
        self._examine = examine

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"_agentd/doctor": handler(NoParams, self._look)}

    async def _look(self, params: NoParams) -> dict[str, Any]:
        return {"checks": [finding.as_json() for finding in await self._examine()]}
