"""Fetches the suggestions for completion in a chat: commands, sessions, files and resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentd.app.chat.slash import OWN, Suggestion
from agentd.core.errors import AgentdError
from agentd.interfaces.client.conversation import Conversation

_PATIENCE = 5.0  # seconds
_MOST = 200  # suggestions of one kind


class Catalog:
    """Asks the daemon for suggestions, over the chat's current `conversation`."""

    def __init__(self) -> None:
        self.conversation: Conversation | None = None
        self._advertised: tuple[Suggestion, ...] = ()

    def learn(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """Replace the daemon's commands by those that it now advertises."""
        self._advertised = tuple(
            (str(command.get("name")), str(command.get("description") or ""))
            for command in commands
        )

    def commands(self) -> Sequence[Suggestion]:
        """Return the chat's own commands, then the daemon's; of equal names the chat's own wins."""
        mine = {name for name, _ in OWN}
        return [*OWN, *(other for other in self._advertised if other[0] not in mine)]

    async def all_sessions(self) -> Sequence[Mapping[str, Any]]:
        """Return the sessions, the last used first. Raises DaemonUnreachable, RemoteError, Busy."""
        if self.conversation is None:
            return ()
        answer = await self.conversation.call("_agentd/sessions/list", within=_PATIENCE)
        return list(answer["sessions"])

    async def sessions(self) -> Sequence[Suggestion]:
        """Suggest the sessions' keys, with their titles; nothing if the daemon does not answer."""
        try:
            found = await self.all_sessions()
        except AgentdError:
            return ()  # a failed completion must not interrupt typing
        return [(str(one.get("key")), str(one.get("title") or "")) for one in found[:_MOST]]

    async def paths(self, folder: str) -> Sequence[Suggestion]:
        """Suggest the paths in a folder of the workspace. Only the path is sent; the agent reads
        the file with its tools.
        """
        if self.conversation is None:
            return ()
        try:
            answer = await self.conversation.call(
                "_agentd/memory/tree", {"path": folder.rstrip("/")}, within=_PATIENCE
            )
        except AgentdError:
            return ()
        return [
            (f"{entry['path'].rstrip('/')}/", "folder")
            if entry.get("is_dir")
            else (str(entry["path"]), "a name, nothing attached")
            for entry in answer["entries"][:_MOST]
        ]

    async def resources(self, server: str) -> Sequence[Suggestion]:
        """Suggest the resources of an MCP server, as `NAME:URI`; for "" the servers, as `NAME:`."""
        if self.conversation is None:
            return ()
        try:
            answer = await self.conversation.call(
                "_agentd/resources", {"server": server}, within=_PATIENCE
            )
        except AgentdError:
            return ()
        if not server:
            return [(f"{name}:", "resources") for name in answer["servers"]]
        found = answer["resources"][:_MOST]
        return [(f"{server}:{one['uri']}", str(one["name"])) for one in found]
