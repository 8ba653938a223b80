"""What the daemon has to offer in a chat: commands, sessions, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentd.app.chat.slash import OWN, Suggestion
from agentd.core.errors import AgentdError
from agentd.interfaces.client.conversation import Conversation

_PATIENCE = 5.0  # seconds
_MOST = 200  # of one kind


class Catalog:
    """Asks the daemon over the conversation of the chat, which may be another one later."""

    def __init__(self) -> None:
        self.conversation: Conversation | None = None
        self._advertised: tuple[Suggestion, ...] = ()

    def learn(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """Take the commands that the daemon advertises."""
        self._advertised = tuple(
            (str(command.get("name")), str(command.get("description") or ""))
            for command in commands
        )

    def commands(self) -> Sequence[Suggestion]:
        """Ours, then the daemon's."""
        mine = {name for name, _ in OWN}
        return [*OWN, *(other for other in self._advertised if other[0] not in mine)]

    async def all_sessions(self) -> Sequence[Mapping[str, Any]]:
        """The sessions, the last used first. Raises DaemonUnreachable, RemoteError, Busy."""
        if self.conversation is None:
            return ()
        answer = await self.conversation.call("_agentd/sessions/list", within=_PATIENCE)
        return list(answer["sessions"])

    async def sessions(self) -> Sequence[Suggestion]:
        """Keys and titles."""
        try:
            found = await self.all_sessions()
        except AgentdError:
            return ()  # nothing to complete with is no reason to disturb
        return [(str(one.get("key")), str(one.get("title") or "")) for one in found[:_MOST]]

    async def paths(self, folder: str) -> Sequence[Suggestion]:
        """What lies in a folder of the workspace. A file is named to the agent, which has tools to read it."""
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
        """What a server of tools offers to be read, as NAME:URI; for "" the servers, as NAME:."""
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
