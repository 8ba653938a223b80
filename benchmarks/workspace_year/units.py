"""The workspace and its transcripts as the units of search that agentd makes of them, or as
lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from agentd.core.message import Text
from agentd.core.search import Chunk, Source
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import SessionKey
from agentd.memory.index.chunks import chunks_of_note
from agentd.memory.index.transcripts import chunks_of_rows
from benchmarks.workspace_year.reading import HERE

_ZONE = ZoneInfo("UTC")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def units() -> list[Chunk]:
    """Notes cut as agentd cuts them, then one unit for each message."""
    notes = (chunk for path, text in _notes() for chunk in chunks_of_note(path, text, scope=""))
    return [*notes, *_messages()]


def lines() -> list[Chunk]:
    """Every line of the notes that says something, then every message."""
    return [*_lines(), *_messages()]


def _notes() -> Iterator[tuple[str, str]]:
    for file in sorted((HERE / "workspace").rglob("*.md")):
        path = file.relative_to(HERE / "workspace").as_posix()
        yield path, file.read_text(encoding="utf-8")


def _lines() -> Iterator[Chunk]:
    for path, text in _notes():
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield Chunk(path, number, number, line, Source.NOTES, "", _day(path))


def _messages() -> Iterator[Chunk]:
    for file in sorted((HERE / "sessions").glob("*.jsonl")):
        lines = file.read_text(encoding="utf-8").splitlines()
        rows = [_row(seq, json.loads(line)) for seq, line in enumerate(lines, 1)]
        yield from chunks_of_rows(SessionKey(file.stem), rows, _ZONE)


def _row(seq: int, line: dict[str, Any]) -> Row:
    content = line["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    words = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    at = datetime.fromisoformat(line["timestamp"])
    return Row(seq, RowRole(line["role"]), (Text(words),), at, turn_id=1)


def _day(path: str) -> date | None:
    found = _DAY.search(path)
    return date.fromisoformat(found[0]) if found else None
