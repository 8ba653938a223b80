"""`/forget` where no fact is meant: which lines of the notes hold a text. Without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentd.commands.declaration import Group
from agentd.commands.typed import NOTES, wanted
from agentd.domain.memory import Hit, Source
from agentd.domain.search import SearchQuery
from agentd.domain.turn import MAIN, Kind
from agentd.domain.workspace import Reader

if TYPE_CHECKING:
    from agentd.domain.turn import SessionKey
    from agentd.ports import Recall

IN_NOTES = Group("memory")

_OWNER = Reader(MAIN, Kind.MAIN)
_MOST = 20


class NoteCommands:
    """What the owner has noted, and where it stands."""

    def __init__(self, recall: Recall) -> None:
        self._recall = recall

    @IN_NOTES.slash("forget", "Name the lines of notes that hold a text", "a text", owners=NOTES)
    async def forget_typed(self, session: SessionKey, text: str) -> str:
        """Which lines of the notes hold it."""
        return await self.named(wanted(text, "/forget boiler code"))

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


def _lines(hit: Hit, wanted: str) -> list[tuple[str, int, str]]:
    chunk = hit.chunk
    numbered = enumerate(chunk.text.split("\n"), start=chunk.start_line)
    return [(chunk.path, n, line.strip()) for n, line in numbered if wanted in line.casefold()]
