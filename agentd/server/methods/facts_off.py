"""The methods of facts where facts are switched off: each says so, and how to switch them on."""

from __future__ import annotations

from typing import Any

from agentd.errors import FactsOff
from agentd.server.peer import Handler, Peer

NAMES = (
    *(f"_agentd/facts/{name}" for name in ("list", "add", "forget", "history", "import", "parked")),
    "_agentd/facts/validate",
    "_agentd/memory/proposals",
)


def refusals() -> dict[str, Handler]:
    """A refusal under each name."""
    return dict.fromkeys(NAMES, _refuse)


async def _refuse(_params: dict[str, Any], _peer: Peer) -> Any:
    raise FactsOff(
        "facts are switched off: nothing about you is kept or recalled",
        cure="set `enabled = true` in the [facts] table of config.toml, then `agentd restart`",
    )
