"""What it brings to ask the same in several ways: `python -m benchmarks.rewordings` prints it by
type.

The year's questions are asked as they stand, and then each with three rewordings that were written
from the questions alone. `LIFE=DIR REWORDINGS=FILE` asks another collection: DIR holds `workspace/`
and `queries.jsonl`, FILE a line `{id, queries}` for each question that is to be asked.
`EMBEDDER=auto` as for the other benchmarks.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.ports import Embedder
from agentd.core.search import Chunk, SearchOptions, Source
from agentd.memory.index.chunks import chunks_of_note
from agentd.memory.index.embedding.static import load
from agentd.memory.index.search import phrasings
from agentd.memory.index.search.phrasings import Phrasing
from agentd.memory.index.search.units import embedded_text
from benchmarks import embedder
from benchmarks.retrieval import searcher_of
from benchmarks.row import Row
from benchmarks.workspace_year.reading import HERE, Asked, Place, questions
from benchmarks.workspace_year.scoring import Marks, Span, mark
from benchmarks.workspace_year.units import units

DEPTH = 60
PARAPHRASE = 0.92  # of the right lines within 1,000 tokens, with rewordings
_BATCH = 64
_OPTIONS = SearchOptions(limit=DEPTH)


class Collection(Struct, frozen=True):
    """Pieces that can be found, questions about them, and the other wordings of each by its id."""

    name: str
    chunks: Sequence[Chunk]
    asked: Sequence[Asked]
    rewordings: Mapping[str, Sequence[str]]


def year() -> Collection:
    """The year of notes that stands beside this."""
    return Collection(
        "a year of notes", units(), questions(), _rewordings(HERE / "rewordings.jsonl")
    )


def elsewhere(folder: Path, file: Path) -> Collection:
    """A collection of somebody else, those of its questions that the file rewords."""
    rewordings = _rewordings(file)
    rows = map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    asked = [_asked(row) for row in rows if row["id"] in rewordings]
    return Collection(folder.name, list(_chunks(folder / "workspace")), asked, rewordings)


async def answers(
    of: Collection, made_by: Embedder
) -> tuple[Mapping[str, Sequence[Span]], Mapping[str, Sequence[Span]]]:
    """The hits of every question by its id: asked once, and with its rewordings."""
    texts = [embedded_text(chunk) for chunk in of.chunks]
    vectors = np.stack(await _embedded(made_by, texts))
    searcher = searcher_of(of.chunks, vectors, made_by.model)
    once, several = {}, {}
    for asked in of.asked:
        said = (asked.query, *of.rewordings[asked.id])
        ways: list[Phrasing] = [
            (text, vector)
            for text, vector in zip(said, await _embedded(made_by, said, query=True), strict=True)
        ]
        options = replace(_OPTIONS, today=asked.now.date())
        once[asked.id], several[asked.id] = (
            [
                _span([of.chunks[slot] for slot in hit.slots], hit.tokens)
                for hit in phrasings.search(searcher, some, options)
            ]
            for some in (ways[:1], ways)
        )
    return once, several


def by_type(asked: Sequence[Asked], found: Mapping[str, Sequence[Span]]) -> dict[str, Marks]:
    """The marks by type of question, and over `all` types."""
    known = [one for one in asked if one.gold]
    types = {"all": known} | {
        kind: [one for one in known if one.type == kind]
        for kind in dict.fromkeys(one.type for one in known)
    }
    return {kind: mark(some, [found[one.id] for one in some]) for kind, some in types.items()}


async def rows() -> AsyncIterator[Row]:
    """A line for all questions and one for paraphrases, of each collection: within 1,000 tokens."""
    async with embedder.opened() as made:
        for of in _collections():
            once, several = await answers(of, made or load())
            for kind in ("all", "paraphrase"):
                without, with_ = (by_type(of.asked, found)[kind] for found in (once, several))
                title = f"{of.name}, {kind}: recall in 1,000 tokens"
                least = PARAPHRASE if kind == "paraphrase" else None
                yield Row(f"{title}, asked once", [without.recall], "share")
                yield Row(f"{title}, with rewordings", [with_.recall], "share", least=least)


async def tables() -> None:
    """Print hit@3 and recall within 1,000 tokens by type, asked once and with rewordings."""
    async with embedder.opened() as made:
        for of in _collections():
            once, several = [by_type(of.asked, f) for f in await answers(of, made or load())]
            print(
                f"\n| {of.name} | n | hit@3 | recall@1000tok | newest first "
                "|\n|---|---|---|---|---|"
            )
            for kind, one in once.items():
                both = (one, several[kind])
                cells = [" → ".join(f"{m.hit3:.3f}" for m in both)]
                cells.append(" → ".join(f"{m.recall:.3f}" for m in both))
                cells.append(" → ".join(f"{m.newest:.3f}" for m in both if m.newest is not None))
                print(f"| {kind} | {one.questions} | {' | '.join(cells)} |", flush=True)


def _collections() -> Iterator[Collection]:
    yield year()
    if "LIFE" in os.environ and "REWORDINGS" in os.environ:
        yield elsewhere(Path(os.environ["LIFE"]), Path(os.environ["REWORDINGS"]))


def _rewordings(file: Path) -> dict[str, list[str]]:
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["queries"] for row in rows}


def _asked(row: dict[str, Any]) -> Asked:
    places = [*row["gold"], *(row.get("alt", []) if len(row["gold"]) == 1 else [])]
    gold, stale = (
        tuple(Place(place["path"], place["line"]) for place in some)
        for some in (places, row.get("stale", []))
    )
    now = datetime.combine(
        date.fromisoformat(row.get("now") or "2026-07-12"), datetime.min.time(), UTC
    )
    need = "all" if len(row["gold"]) > 1 else "any"
    return Asked(row["id"], row["type"], "", row["query"], now, need, gold, stale)


def _chunks(home: Path) -> Iterator[Chunk]:
    for file in sorted(home.rglob("*.md")):
        path = file.relative_to(home).as_posix()
        yield from chunks_of_note(path, file.read_text(encoding="utf-8"), scope="")
    for file in sorted((home / "sessions").glob("*.jsonl")):
        for line, raw in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            row = json.loads(raw)
            if text := _text(row["content"]):
                day = date.fromisoformat(row["at"][:10])
                path = f"sessions/{file.name}"
                yield Chunk(path, line, line, text, Source.SESSIONS, "", day, row["role"])


def _text(content: str | Sequence[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content.strip()
    return " ".join(block["text"] for block in content if block.get("type") == "text").strip()


def _span(parts: Sequence[Chunk], tokens: int) -> Span:
    first, last = parts[0], parts[-1]
    return Span(first.path, first.start_line, last.end_line, tokens)


async def _embedded(
    made_by: Embedder, texts: Sequence[str], *, query: bool = False
) -> list[np.ndarray]:
    return [
        np.frombuffer(row, "<f4")
        for first in range(0, len(texts), _BATCH)
        for row in await made_by.embed(texts[first : first + _BATCH], query=query)
    ]


if __name__ == "__main__":
    asyncio.run(tables())
