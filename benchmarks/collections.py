"""Texts and questions with known answers, by several authors, in one form.

A year of notes stands beside this. `AGENTD_MEMBENCH=DIR` adds collections that may be read here and
are not shipped: another year, by another author (`DIR/life`), and long conversations of two people
(`DIR/dev`), each once as dated notes and once as transcripts.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from agentd.core.search import Chunk, Source
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.transcript_lines import read_line
from agentd.memory.index.chunks import chunks_of_note
from agentd.memory.index.transcripts import chunks_of_rows
from benchmarks.workspace_year import reading, units

ZONE = ZoneInfo("UTC")

Place = tuple[str, int]
"""A line of a file, counted from 1."""


class Question(Struct, frozen=True):
    """A question and the day it is asked on. One of the places of each member of `needed` must be
    found; nothing needed means that nothing answers it. `stale` places say an outdated value.
    """

    id: str
    kind: str
    text: str
    today: date
    needed: tuple[tuple[Place, ...], ...]
    stale: tuple[Place, ...] = ()
    asks_state: bool = False  # whether it asks how something stands that has changed


class Collection(Struct, frozen=True):
    """What can be found, and the questions about it. Fits leave out all of one `author`
    together.
    """

    name: str
    author: str
    chunks: Sequence[Chunk]
    questions: Sequence[Question]
    at: Mapping[Place, Sequence[int]] = field(default_factory=dict)  # which chunks hold a line

    def holding(self, places: Sequence[Place]) -> frozenset[int]:
        """The numbers of the chunks that hold one of these lines."""
        return frozenset(number for place in places for number in self.at.get(place, ()))


def collections() -> list[Collection]:
    """All that are here."""
    found = [year()]
    if place := os.environ.get("AGENTD_MEMBENCH"):
        found += [life(Path(place) / "life"), *conversations(Path(place))]
    return found


def year() -> Collection:
    """The year of notes that stands beside this."""
    asked = [
        Question(
            one.id,
            one.type,
            one.query,
            one.now.date(),
            _needed([(g.path, g.line) for g in one.gold], every=one.need == "all"),
            tuple((s.path, s.line) for s in one.stale),
            one.type == "changed",
        )
        for one in reading.questions()
    ]
    return _collection("year", "year", units.units(), asked)


def life(folder: Path) -> Collection:
    """The year by another author."""
    rows = map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    return _collection("life", "life", list(_workspace(folder / "workspace")), map(_asked, rows))


def conversations(folder: Path) -> Iterator[Collection]:
    """The conversations, as notes and as transcripts."""
    sys.path.insert(0, str(folder))
    core = importlib.import_module("membench.core")
    for one in core.load_split(folder / "dev"):
        for form, path, line in (("notes", "md", "md_line"), ("sessions", "jsonl", "jsonl_line")):
            chunks = list(dated_notes(one.dir) if form == "notes" else messages(one.dir))
            today = max(chunk.date for chunk in chunks if chunk.date) + timedelta(days=1)
            places = {turn["id"]: (turn[path], turn[line]) for turn in one.turns}
            asked = [
                Question(
                    q["id"],
                    q["category"],
                    q["query"],
                    today,
                    tuple((places[turn],) for turn in q["gold_turns"]),
                )
                for q in one.queries
                if q["category"] != "adversarial"
            ]
            yield _collection(f"{one.id}, {form}", "conversations", chunks, asked)


def _collection(
    name: str, author: str, chunks: Sequence[Chunk], asked: Iterator[Question] | Sequence[Question]
) -> Collection:
    at: dict[Place, list[int]] = {}
    for number, chunk in enumerate(chunks):
        for line in range(chunk.start_line, chunk.end_line + 1):
            at.setdefault((chunk.path, line), []).append(number)
    return Collection(name, author, chunks, list(asked), at)


def _needed(gold: Sequence[Place], *, every: bool) -> tuple[tuple[Place, ...], ...]:
    if every:
        return tuple((place,) for place in gold)
    return (tuple(gold),) if gold else ()


def _asked(row: Mapping[str, Any]) -> Question:
    gold, alt, stale = (
        [(one["path"], one["line"]) for one in row.get(name, ())]
        for name in ("gold", "alt", "stale")
    )
    needed = _needed([*gold, *alt], every=False) if len(gold) == 1 else _needed(gold, every=True)
    today = date.fromisoformat(row.get("now", "2026-07-12")[:10])
    kind = row["type"]
    return Question(row["id"], kind, row["query"], today, needed, tuple(stale), kind == "newest")


def _workspace(home: Path) -> Iterator[Chunk]:
    for file in sorted(home.rglob("*.md")):
        path = file.relative_to(home).as_posix()
        yield from chunks_of_note(path, file.read_text(encoding="utf-8"), scope="main")
    now = datetime(2026, 7, 12, tzinfo=UTC)
    for file in sorted((home / "sessions").glob("*.jsonl")):
        rows = []
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            new, at = read_line(json.loads(line), number, now, ZONE)
            rows.append(Row(number, RowRole(new.role), new.blocks, at, turn_id=1))
        yield from chunks_of_rows(SessionKey(file.stem), rows, ZONE)


def dated_notes(home: Path) -> Iterator[Chunk]:
    """The pieces of a conversation's notes, a file a day."""
    for file in sorted((home / "memory").glob("*.md")):
        text = file.read_text(encoding="utf-8")
        yield from chunks_of_note(f"memory/{file.name}", text, scope="main")


def messages(home: Path) -> Iterator[Chunk]:
    """The messages of a conversation's transcripts."""
    for file in sorted((home / "sessions").glob("*.jsonl")):
        for line, raw in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            row = json.loads(raw)
            day = date.fromisoformat(row["timestamp"][:10])
            path = f"sessions/{file.name}"
            yield Chunk(path, line, line, row["content"], Source.SESSIONS, "main", day, row["name"])
