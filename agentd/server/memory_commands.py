"""`/forget` where no fact is meant: which lines of the notes hold a text. Without a model."""

from __future__ import annotations

from agentd.domain.memory import Hit, Source
from agentd.domain.search import SearchQuery
from agentd.domain.turn import MAIN, Kind, SessionKey, kind_of
from agentd.domain.workspace import Reader
from agentd.errors import InvalidRequest
from agentd.ports import Recall
from agentd.server.commands import Command

_OWNER = Reader(MAIN, Kind.MAIN)
_MOST = 20


class MemoryCommands:
    """What the owner has noted, and where it stands."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    def all(self) -> tuple[Command, ...]:
        """The one command."""
        return (
            Command("forget", "Name the lines of notes that hold a text", self._forget, "a text"),
        )

    async def _forget(self, session: SessionKey, text: str) -> str:
        return await self.named(wanted(session, text, "/forget boiler code"))

    async def named(self, said: str) -> str:
        """Which lines of the notes hold a text."""
        found = await self._recall.search(
            SearchQuery(said, limit=_MOST, sources=frozenset({Source.NOTES})), _OWNER
        )
        lines = sorted({line for hit in found.hits for line in _lines(hit, said.casefold())})
        if not lines:
            return f"No line of the notes holds “{said}”. Nothing was changed."
        places = "\n".join(f"{path}:{number}: {line}" for path, number, line in lines)
        return (
            "Nothing was changed. These lines hold it; delete them, or have `agentd memory forget` "
            f"erase what agentd itself wrote:\n{places}"
        )


def wanted(session: SessionKey, text: str, example: str) -> str:
    """What follows a command's name. Raises InvalidRequest for nothing, or in others' sessions."""
    check_owner(session)
    if not text.strip():
        raise InvalidRequest("the command needs a text", cure=f"write it like: {example}")
    return text.strip()


def check_owner(session: SessionKey) -> None:
    """Raises InvalidRequest where others are in the session."""
    if kind_of(session) is not Kind.MAIN:
        raise InvalidRequest("your notes are not for this session", cure="say it in main or a chat")


def _lines(hit: Hit, wanted: str) -> list[tuple[str, int, str]]:
    chunk = hit.chunk
    numbered = enumerate(chunk.text.split("\n"), start=chunk.start_line)
    return [(chunk.path, n, line.strip()) for n, line in numbered if wanted in line.casefold()]
