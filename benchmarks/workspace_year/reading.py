"""The questions as values, and the text of the lines that answer them."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).parent


class Place(Struct, frozen=True, order=True):
    """A line of a file, counted from 1. Notes are relative to the workspace; transcripts begin with
    `sessions/`.
    """

    path: str
    line: int

    def raw(self) -> str:
        """The line as it stands in the file."""
        return _rows(self.path)[self.line - 1]


class Asked(Struct, frozen=True):
    """A question, when it is asked, and the lines that answer it; `stale` ones said so once."""

    id: str
    type: str
    split: str
    query: str
    now: datetime
    need: str  # "any" or "all" of the gold lines
    gold: tuple[Place, ...]
    stale: tuple[Place, ...]


@cache
def questions() -> tuple[Asked, ...]:
    """All of them, in the order of the file."""
    rows = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(_question(json.loads(row)) for row in rows)


def text_at(place: Place) -> str:
    """What a reader sees there: the line of a note, or the words of a message."""
    if not place.path.startswith("sessions/"):
        return place.raw()
    content = json.loads(place.raw())["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)


@cache
def _rows(path: str) -> list[str]:
    home = HERE if path.startswith("sessions/") else HERE / "workspace"
    return (home / path).read_text(encoding="utf-8").splitlines()


def _question(row: dict) -> Asked:
    return Asked(
        id=row["id"],
        type=row["type"],
        split=row["split"],
        query=row["query"],
        now=datetime.fromisoformat(row["now"]),
        need=row["need"],
        gold=tuple(Place(**one) for one in row["gold"]),
        stale=tuple(Place(**one) for one in row["stale"]),
    )
