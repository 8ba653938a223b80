"""The methods and slash commands of facts where facts are switched off: each says so, and how to switch
them on.
"""

from __future__ import annotations

from typing import Any

from agentd.domain.turn import SessionKey
from agentd.errors import FactsOff
from agentd.server.commands import Command
from agentd.server.peer import Handler, Peer

_OWN = ("list", "add", "forget", "history", "import", "parked")
_ON_CHANGES = ("changes", "undo", "merge", "pending", "accept", "reject")
NAMES = (
    *(f"_agentd/facts/{name}" for name in (*_OWN, *_ON_CHANGES)),
    "_agentd/facts/validate",
    "_agentd/memory/proposals",
)
_COMMANDS = ("remember", "undo", "proposals")


def refusals() -> dict[str, Handler]:
    """A refusal under each name of a method."""
    return dict.fromkeys(NAMES, _refuse)


def refusing_commands() -> tuple[Command, ...]:
    """A refusal under each name of a slash command, but `/forget`: notes are searched without facts."""
    return tuple(Command(name, "Facts are switched off", _refuse_command) for name in _COMMANDS)


async def _refuse(_params: dict[str, Any], _peer: Peer) -> Any:
    raise _off()


async def _refuse_command(_session: SessionKey, _text: str) -> str:
    raise _off()


def _off() -> FactsOff:
    return FactsOff(
        "facts are switched off: nothing about you is kept or recalled",
        cure="set `enabled = true` in the [facts] table of config.toml, then `agentd restart`",
    )
