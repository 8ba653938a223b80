"""`_agentd/facts/validate`: the daily review of all facts, at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler


class ValidateParams(Params):
    """With `dry_run` it is only said what would be done."""

    dry_run: bool = False


class UpkeepMethods:
    """The review for commands; `validate` carries it out."""

    def __init__(self, validate: Callable[[bool], Awaitable[dict[str, Any]]]) -> None:
        self._validate = validate

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"_agentd/facts/validate": handler(ValidateParams, self._look)}

    async def _look(self, params: ValidateParams) -> dict[str, Any]:
        return await self._validate(params.dry_run)
