"""Text and file names in outputs for the model: inside a fence of backticks that they
cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from agentd.core.tool import ToolOutput

MARK = re.compile(r"<!--\s*agentd\s*:", re.IGNORECASE)  # begins a mark of a line's origin
_BACKTICKS = re.compile(r"`{3,}")
_UNPRINTABLE = re.compile(  # controls except newline and tab, surrogates, text directions, tags
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)


def in_backticks(text: str) -> str:
    """Return `text` between two lines of backticks that are longer than any run of backticks
    inside.
    """
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    bar = "`" * (longest + 1)
    return f"{bar}text\n{printable(text).rstrip(chr(10))}\n{bar}"


def lines_heading(path: str, first: int, last: int) -> str:
    """Return the line above a fence that names the file and the lines inside. It is never a fence
    itself, even if the file's name begins with backticks.
    """
    return f"{'./' if path.startswith('`') else ''}{path}:{first}-{last}"


def printable(text: str) -> str:
    """Return `text` with control, text-direction and tag characters and surrogates replaced by
    U+FFFD.
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def without_marks(text: str) -> str:
    """Return `text` with each origin mark escaped: only agentd writes such marks."""
    return MARK.sub(lambda match: f"&lt;!--{match.group()[4:]}", text)


class OutsideNames(Protocol):
    """Port: knows which names come from outside. The workspace knows it of files, recall also of
    transcripts and lines.
    """

    async def has_outside_name(self, places: Sequence[str], /) -> bool:
        """Return whether text from outside has named one of these places."""


async def places_output(
    names: OutsideNames, text: str, places: Iterable[str], *, outside: bool = False
) -> ToolOutput:
    """Return the output of a tool that shows the names of files, folders or transcripts. It is
    tainted if `outside` is set or text from outside has named one of the places: a name may be
    worded as an order.
    """
    return ToolOutput(text, tainted=outside or await names.has_outside_name(tuple(places)))
