"""`_agentd/memory/forget`: erase any text, whether or not a fact says it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agentd.domain.fact import ErasureReport
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler


class ForgetParams(Params):
    """The words; every sentence that has them is erased."""

    text: str


class ForgetMethods:
    """Erasing for commands. `erase` masks the words wherever agentd wrote them."""

    def __init__(self, erase: Callable[[str], Awaitable[ErasureReport]]) -> None:
        self._erase = erase

    def routes(self) -> dict[str, Handler]:
        """The one method."""
        return {"_agentd/memory/forget": handler(ForgetParams, self._forget)}

    async def _forget(self, params: ForgetParams) -> dict[str, Any]:
        return (await self._erase(params.text)).as_json()
