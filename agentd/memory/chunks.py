"""Notes cut into chunks that name their lines exactly. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from agentd.domain.memory import Chunk, Source

_LINES = 20
_HEADING = re.compile(r"#{1,2}\s")
_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)", re.ASCII)


def chunks_of_note(path: str, text: str, *, owner_only: bool) -> tuple[Chunk, ...]:
    """The chunks of a markdown file. One begins at each heading of the first two levels, and after
    20 lines; a chunk's text is exactly its lines. Stretches of blank lines alone are left out.
    """
    lines = text.removesuffix("\n").split("\n")
    day = date_in(path)
    return tuple(
        Chunk(path, first + 1, end, "\n".join(lines[first:end]), Source.NOTES, owner_only, day)
        for first, end in _spans(lines)
        if any(line.strip() for line in lines[first:end])
    )


def date_in(path: str) -> date | None:
    """The date that a path names, the last one if there are several."""
    for year, month, day in reversed(_DATE.findall(path)):
        try:
            return date(int(year), int(month), int(day))
        except ValueError:
            continue
    return None


def _spans(lines: list[str]) -> Iterator[tuple[int, int]]:
    first = 0
    for number, line in enumerate(lines):
        if number > first and (number - first == _LINES or _HEADING.match(line)):
            yield first, number
            first = number
    yield first, len(lines)
