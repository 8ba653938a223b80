"""What a chat does itself when a message begins with a slash."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from agentd.core.errors import AgentdError
from agentd.interfaces.client.conversation import Conversation
from agentd.interfaces.commands.plain import Times, span, table

Suggestion = tuple[str, str]  # what is put in, what it is

OWN: tuple[Suggestion, ...] = (
    ("sessions", "List the sessions and choose one"),
    ("switch", "Go to a session, a new one too: /switch chat:NAME"),
    ("image", "Send an image: /image PATH [what to say of it]"),
    ("expand", "Show the last tool call in full (Ctrl-O)"),
    ("quit", "Leave; what runs goes on (Ctrl-D)"),
    ("help", "Show this"),
)
_KEYS = (
    "Enter sends, Alt-Enter begins a new line, Ctrl-C cancels the running turn.",
    "Tab completes commands, sessions after /switch, images after /image,",
    "workspace files and resources of servers after @.",
    "Ctrl-R searches what was typed before.",
)
_WORD = re.compile(r"/[a-z][a-z_-]*")
_PATH = re.compile(r"""(?P<quote>["'])(?P<quoted>.+?)(?P=quote)|(?P<plain>(?:\\ |\S)+)""")
_BESIDE_TITLE = 45  # columns of the other columns


def parse(message: str) -> tuple[str, str] | None:
    """The command of ours that a message is, and what stands behind it; None if it is none."""
    name, _, rest = message.strip().partition(" ")
    known = {f"/{own}" for own, _ in OWN}
    return (name[1:], rest.strip()) if name in known and "\n" not in rest else None


def image_and_words(rest: str) -> tuple[str, str] | None:
    """The path and the words behind /image; a path with spaces stands in quotes. None without one."""
    found = _PATH.match(rest)
    if found is None:
        return None
    path = found["quoted"] or found["plain"].replace("\\ ", " ")
    return path, rest[found.end() :].strip()


def misspelt(message: str, commands: Sequence[Suggestion]) -> str | None:
    """What to say of a message that looks like a command and is none of `commands`; None for any other,
    and as long as the daemon has not told its own.
    """
    first = message.partition("\n")[0].partition(" ")[0].rstrip()
    is_known = first in {f"/{name}" for name, _ in commands}
    if is_known or len(commands) <= len(OWN) or not _WORD.fullmatch(first):
        return None
    return f"there is no {first}; /help lists what there is (a space before it sends it as words)"


def help_text(commands: Sequence[Suggestion]) -> str:
    """The commands and the keys."""
    width = max(len(name) for name, _ in commands) + 1
    lines = [f"{'/' + name:<{width}}  {what}" for name, what in commands]
    return "\n".join([*lines, *_KEYS])


def session_table(sessions: Sequence[Mapping[str, Any]], here: str, times: Times) -> str:
    """The sessions with their numbers, titles and ages."""
    room = max(10, shutil.get_terminal_size().columns - _BESIDE_TITLE)
    rows = [
        {
            "#": number,
            "key": session.get("key"),
            "title": _clipped(" ".join(str(session.get("title") or "").split()), room),
            "last used": "here" if session.get("key") == here else _age(session, times),
        }
        for number, session in enumerate(sessions, start=1)
    ]
    return table(rows, ("#", "key", "last used", "title"), "no sessions yet")


def chosen(answer: str, sessions: Sequence[Mapping[str, Any]]) -> str | None:
    """The key that a number or a key names; None for nothing."""
    keys = [str(session.get("key")) for session in sessions]
    if answer.isdecimal() and 1 <= int(answer) <= len(keys):
        return keys[int(answer) - 1]
    return answer or None


def _age(session: Mapping[str, Any], times: Times) -> str:
    try:
        age = times.age(str(session.get("updated_at")))
    except ValueError:
        return ""
    return f"{' '.join(span(age).split()[:2])} ago"


def _clipped(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


# What the daemon has to offer in a chat: commands, sessions, files.

_PATIENCE = 5.0  # seconds
_MOST = 200  # of one kind


class Catalog:
    """Asks over the conversation of the chat, which may be another one later."""

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
        """What lies in a folder of the workspace."""
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
            else (str(entry["path"]), "")
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
