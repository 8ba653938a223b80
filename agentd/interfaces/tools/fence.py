"""Text and names of files, as the model reads them: data in a fence that it cannot close."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from agentd.core.tool import ToolOutput

MARK = re.compile(r"<!--\s*agentd\s*:", re.IGNORECASE)  # how a remark about a line's origin begins
_BACKTICKS = re.compile(r"`{3,}")
_UNPRINTABLE = re.compile(  # controls but newline and tab, surrogates, text directions, tags
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


def in_backticks(text: str) -> str:
    """`text` between two lines of backticks, more of them than stand anywhere inside."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    bar = "`" * (longest + 1)
    return f"{bar}text\n{printable(text).rstrip(chr(10))}\n{bar}"


def lines_heading(path: str, first: int, last: int) -> str:
    """The line above a fence that says which lines of a file stand in it. Never a fence itself,
    however the file is called.
    """
    return f"{'./' if path.startswith('`') else ''}{path}:{first}-{last}"


def printable(text: str) -> str:
    """`text` with control, text-direction and tag characters and surrogates replaced by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def without_marks(text: str) -> str:
    """`text` with every remark of ours turned into plain words, since only agentd makes them."""
    return MARK.sub(lambda match: f"&lt;!--{match.group()[4:]}", text)


class PlaceNames(Protocol):
    """Who has named what; the workspace knows it of files, recall of transcripts and of lines, too."""

    async def names_outside(self, places: Sequence[str], /) -> bool:
        """Whether text from outside has named one of these places."""


async def places_output(
    names: PlaceNames, text: str, places: Iterable[str], *, outside: bool = False
) -> ToolOutput:
    """The answer of a tool that shows these places by their names: files, folders and transcripts
    may be called like an order. It is tainted where text from outside has named one of them, as
    where the rest of it comes from `outside`.
    """
    return ToolOutput(text, tainted=outside or await names.names_outside(tuple(places)))
