"""Slash commands: what a user can type instead of a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.core.errors import InvalidRequest
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.acp_schema import PromptCall
from agentd.interfaces.acp.peer import ClientRole

Act = Callable[[SessionKey, str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One slash command. `act` gets the session and what follows the name, and returns what to tell
    the user; `hint` says what may follow.
    """

    name: str
    description: str
    act: Act
    hint: str = ""


class Commands:
    """Runs slash commands. They are no turns: nothing of them is stored."""

    def __init__(self, commands: Sequence[SlashCommand]) -> None:
        """`/help` is added to `commands`."""
        self._owners = _with_help(commands)
        self._of_bound = _with_help(())

    def find(self, call: PromptCall, role: ClientRole) -> tuple[SlashCommand, str] | None:
        """The command that the user has typed and what follows its name, or None: any other text that
        begins with a slash is a message, and so is one with an image. Raises InvalidRequest for a command
        that is not for this role, and for one with text beside it that he did not type: commands take
        their words as his own.
        """
        typed = call.typed
        words = typed.split(maxsplit=1)
        if call.images or not typed.startswith("/") or words[0][1:] not in self._owners:
            return None
        command = self._of(role).get(words[0][1:])
        if command is None:
            raise InvalidRequest(
                f"there is no command {words[0]} here", cure="/help lists those there are"
            )
        if call.quoted:
            raise InvalidRequest(
                f"{words[0]} was not carried out: commands take the words that you type, and this message"
                " holds an attachment, a link or pasted text as well",
                cure="send the command alone, or say in a message what is to be done with the rest",
            )
        return command, "".join(words[1:])

    def available(self, role: ClientRole) -> dict[str, Any]:
        """The `available_commands_update` that clients complete from."""
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [_advertised(command) for command in self._of(role).values()],
        }

    def _of(self, role: ClientRole) -> dict[str, SlashCommand]:
        return self._owners if role.is_owner else self._of_bound


def _with_help(commands: Sequence[SlashCommand]) -> dict[str, SlashCommand]:
    """The commands by name, and one that lists them all."""
    known = {command.name: command for command in commands}

    async def tell(_session: SessionKey, _argument: str) -> str:
        return "\n".join(
            f"/{c.name}{f' [{c.hint}]' if c.hint else ''}: {c.description}" for c in known.values()
        )

    known["help"] = SlashCommand("help", "List these commands", tell)
    return known


def _advertised(command: SlashCommand) -> dict[str, Any]:
    told: dict[str, Any] = {"name": command.name, "description": command.description}
    return {**told, "input": {"hint": command.hint}} if command.hint else told
