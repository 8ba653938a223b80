"""What tools answer where they name places: files, folders and transcripts may be called like an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from agentd.domain.tool import ToolOutput


class Names(Protocol):
    """Who has named what; the workspace knows it of files, recall of transcripts and of lines, too."""

    async def names_outside(self, places: Sequence[str], /) -> bool:
        """Whether text from outside has named one of these places."""


async def shown(
    names: Names, text: str, places: Iterable[str], *, outside: bool = False
) -> ToolOutput:
    """The answer of a tool that shows these places by their names. It is tainted where text from outside
    has named one of them, as where the rest of it comes from `outside`.
    """
    return ToolOutput(text, tainted=outside or await names.names_outside(tuple(places)))
