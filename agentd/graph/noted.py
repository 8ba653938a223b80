"""Which text of the graph the tables say, noted beside them and lost with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Protocol, TypeAlias

from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import Reader
from agentd.errors import FileMissing
from agentd.graph.files import FOLDER
from agentd.ports import Workspace

_READER = Reader(SessionKey("graph"), Kind.MAIN)
_NOTE = "graph"
_DAMAGED = " damaged"

Text: TypeAlias = Mapping[str, tuple[int, ...]]  # files, with what tells each from what it was


class Notes(Protocol):
    """What is kept beside the tables, and lost with them."""

    async def meta(self, name: str) -> str:
        """What was noted under the name; "" if nothing."""

    async def set_meta(self, name: str, value: str) -> None:
        """Note something."""


class NotedText:
    """The text that the tables were last made level with. Methods raise WorkspaceError, StorageError."""

    def __init__(self, workspace: Workspace, notes: Notes) -> None:
        self._workspace = workspace
        self._notes = notes

    async def found(self) -> Text:
        """The text that there is."""
        try:
            entries = await self._workspace.tree(FOLDER, 1, _READER)
        except FileMissing:
            entries = ()
        return {one.path: one.stamp for one in entries if one.path.endswith(".0")}

    async def is_current(self) -> bool:
        """Whether the tables say the text that there is."""
        return await self._is_noted(await self.found())

    async def is_damaged(self) -> bool:
        """Whether there was damage in the text that they say."""
        return (await self._notes.meta(_NOTE)).endswith(_DAMAGED)

    async def note(self, text: Text, *, damaged: bool) -> None:
        """The tables say this text."""
        await self._notes.set_meta(_NOTE, f"{_name(text)}{_DAMAGED if damaged else ''}")

    async def note_change(
        self, before: Text, after: Text, ours: Collection[str], *, damaged: bool
    ) -> None:
        """The tables say what was done to `ours` of the files. They say the whole text after it if they
        said that before and nobody else has changed it meanwhile; else it is to be read again.
        """
        if await self._is_noted(before) and _others(before, ours) == _others(after, ours):
            await self.note(after, damaged=damaged)
        else:
            await self.forget()

    async def forget(self) -> None:
        """What the tables say is not known."""
        await self._notes.set_meta(_NOTE, "")

    async def _is_noted(self, text: Text) -> bool:
        return (await self._notes.meta(_NOTE)).removesuffix(_DAMAGED) == _name(text)


def _others(text: Text, ours: Collection[str]) -> Text:
    return {path: stamp for path, stamp in text.items() if path not in ours}


def _name(text: Text) -> str:
    rows = [f"{path} {' '.join(map(str, stamp))}\n" for path, stamp in sorted(text.items())]
    return sha256("".join(rows).encode()).hexdigest()
