"""Slash commands: what a user can type instead of a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agentd.domain.compaction import RoomReport
from agentd.domain.turn import SessionKey
from agentd.ports import SessionStore
from agentd.server.turns import Turns

_HELP = {
    "compact": "Shorten this conversation's context now",
    "new": "Save what matters and begin an empty context",
    "flush": "Save what matters to memory now",
    "status": "Say how this session stands",
    "help": "List these commands",
}


class Commands:
    """Runs slash commands. They are no turns: nothing of them is stored."""

    def __init__(self, turns: Turns, store: SessionStore) -> None:
        self._turns = turns
        self._store = store
        self._actions: dict[str, Callable[[SessionKey], Awaitable[str]]] = {
            "compact": self._compact,
            "new": self._new,
            "flush": self._flush,
            "status": self._status,
            "help": self._help,
        }

    def find(self, text: str) -> str | None:
        """The command a message is, or None: any other text that begins with a slash is a message."""
        words = text.split(maxsplit=1)
        if text.startswith("/") and words and words[0][1:] in self._actions:
            return words[0][1:]
        return None

    async def run(self, command: str, session: SessionKey) -> str:
        """Do it; returns what to tell the user."""
        return await self._actions[command](session)

    def available(self) -> dict[str, Any]:
        """The `available_commands_update` that clients complete from."""
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"name": name, "description": text} for name, text in _HELP.items()
            ],
        }

    async def _compact(self, session: SessionKey) -> str:
        return _say(await self._turns.compact(session))

    async def _new(self, session: SessionKey) -> str:
        return f"A new context begins. {_say(await self._turns.start_over(session))}"

    async def _flush(self, session: SessionKey) -> str:
        return _say(await self._turns.flush(session))

    async def _status(self, session: SessionKey) -> str:
        info = next((i for i in await self._store.sessions() if i.key == session), None)
        if info is None:
            return f"Session {session}: nothing said yet."
        return (
            f"Session {session}: {info.turns} turns, {info.rows} rows, "
            f"{info.context_tokens} tokens in the context, {self._turns.queued(session)} waiting."
        )

    async def _help(self, session: SessionKey) -> str:
        return "\n".join(f"/{name}: {text}" for name, text in _HELP.items())


def _say(report: RoomReport) -> str:
    done = [
        word
        for word, is_done in (("flushed", report.flushed), ("compacted", report.compacted))
        if is_done
    ]
    what = " and ".join(done).capitalize() or "Nothing was done"
    return f"{what} ({report.reason}): {report.tokens_before} tokens before, {report.tokens_after} after."
