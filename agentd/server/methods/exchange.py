"""`_agentd/facts/snapshot`: the graph as texts that others can take in."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agentd.errors import Busy
from agentd.graph.exchange import Exchange
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler

NAMES = ("_agentd/facts/snapshot",)
_PAGE = 256 * 1024  # characters: of four bytes each they fit a line


class SnapshotParams(Params):
    """The part of the text from `after` on, of the state that an earlier part was of."""

    after: int = Field(0, ge=0)
    state: str = ""


class ExchangeMethods:
    """The whole graph for commands."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"_agentd/facts/snapshot": handler(SnapshotParams, self._snapshot)}

    async def _snapshot(self, params: SnapshotParams) -> dict[str, Any]:
        """`next` is what to pass as `after` for the next part, None at the end."""
        found = await self._exchange.state()
        held = found.checkpoint
        if params.state and params.state != held.hash.hex:
            raise Busy("the graph changed while it was read", cure="begin again")
        end = params.after + _PAGE
        return {
            "state": held.hash.hex,
            "concepts": held.concepts,
            "contexts": held.contexts,
            "episodes": held.relations,
            "text": found.text[params.after : end],
            "next": end if end < len(found.text) else None,
        }
