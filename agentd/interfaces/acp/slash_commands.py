"""Slash commands, which a user types in place of a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct

from agentd.core.errors import InvalidRequest
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.acp_schema import PromptCall
from agentd.interfaces.acp.peer import ClientRole

Act = Callable[[SessionKey, str], Awaitable[str]]


class SlashCommand(Struct, frozen=True):
    """One slash command. `act` takes the session and the text after the name, and returns the
    answer to show; `hint` describes that text.
    """

    name: str
    description: str
    act: Act
    hint: str = ""


class Commands:
    """The slash commands of each role. They run outside of turns, so nothing of them is stored."""

    def __init__(self, commands: Sequence[SlashCommand]) -> None:
        """Add `/help` to `commands`."""
        self._owners = _with_help(commands)
        self._of_bound = _with_help(())

    def find(self, call: PromptCall, role: ClientRole) -> tuple[SlashCommand, str] | None:
        """Return the command that the prompt names and the text after its name; None if the prompt
        is a message, as is one with an image or an unknown name after the slash. Raises
        InvalidRequest if the role may not use the command, and if the prompt also holds text that
        the user did not type, since commands treat their arguments as the user's own words.
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
                f"{words[0]} was not carried out: commands take the words that you type, and this "
                "message holds an attachment, a link or pasted text as well",
                cure="send the command alone, or say in a message what is to be done with the rest",
            )
        return command, "".join(words[1:])

    def available(self, role: ClientRole) -> dict[str, Any]:
        """Return the `available_commands_update` that lists the role's commands."""
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [_advertised(command) for command in self._of(role).values()],
        }

    def _of(self, role: ClientRole) -> dict[str, SlashCommand]:
        return self._owners if role.is_owner else self._of_bound


def _with_help(commands: Sequence[SlashCommand]) -> dict[str, SlashCommand]:
    """Return the commands by name, with `/help`, which lists all of them."""
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
