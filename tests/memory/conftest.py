"""An index, a session store and rows for the tests of memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from agentd.core.errors import NotFound
from agentd.core.message import Block, Text
from agentd.core.search import (
    Audience,
    Chunk,
    Hit,
    IndexState,
    LinePatch,
    SearchQuery,
    SearchResult,
    Source,
)
from agentd.core.transcript import Coverage, Row, RowRole, SessionInfo

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class DictIndex:
    """Finds chunks by substring."""

    epoch = 0

    def __init__(self) -> None:
        self.entries: dict[str, tuple[str, list[Chunk]]] = {}
        self.erased: list[str] = []
        self.sources: dict[str, Source] = {}
        self.changes = 0
        self.completed = 0

    async def digests(self, source: Source):
        return {p: d for p, (d, _) in self.entries.items() if self.sources[p] is source}

    async def replace(
        self, path: str, digest: str, chunks: Sequence[Chunk], since: int = 1
    ) -> None:
        self.changes += 1
        held = [c for c in self.entries.get(path, ("", []))[1] if c.start_line < since]
        self.entries[path] = (digest, [*held, *chunks])
        self.sources[path] = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES

    async def patch(self, path: str, digest: str, patches: Sequence[LinePatch[Chunk]]) -> None:
        held = self.entries[path][1]
        kept = [c for c in held if not any(p.first <= c.start_line < p.end for p in patches)]
        moved = [c.moved(sum(p.by for p in patches if p.end <= c.start_line)) for c in kept]
        pieces = [piece for one in patches for piece in one.pieces]
        await self.replace(path, digest, sorted((*moved, *pieces), key=lambda c: c.start_line))

    async def extend(self, path: str, digest: str, chunks: Sequence[Chunk]) -> None:
        await self.replace(path, digest, [*self.entries.get(path, ("", []))[1], *chunks])

    async def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.entries.pop(path, None)

    async def erase(self, paths: Sequence[str]) -> None:
        self.erased += paths
        await self.remove(paths)

    async def outdate(self) -> None:
        self.entries = {path: ("", chunks) for path, (_, chunks) in self.entries.items()}

    async def verify(self) -> None:
        pass

    async def complete(self) -> None:
        self.completed += 1

    async def settle(self) -> None:
        pass

    async def search(self, query: SearchQuery, audience: Audience) -> SearchResult:
        hits = [
            Hit(chunk, 1.0)
            for _, chunks in self.entries.values()
            for chunk in chunks
            if query.text in chunk.text
            and audience.sees(chunk.scope)
            and (query.sources is None or chunk.source in query.sources)
        ]
        return SearchResult(tuple(hits[: query.limit]), "" if hits else "no_match")

    async def state(self) -> IndexState:
        count = sum(len(chunks) for _, chunks in self.entries.values())
        return IndexState(len(self.entries), count, 0, "ready")


class ListStore:
    """Transcripts in lists, and what flushes record."""

    def __init__(self) -> None:
        self.transcripts: dict[str, list[Row]] = {"main": []}
        self.covered: list[Coverage] = []
        self.failures = 0
        self.reads = 0
        self.asked: list[str] = []

    def add(self, session: str, *rows: Row) -> None:
        self.transcripts.setdefault(session, []).extend(rows)

    async def sessions(self):
        return tuple(
            SessionInfo(key, "", NOON, NOON, len(rows), 0, 0, 0)
            for key, rows in self.transcripts.items()
        )

    async def row_counts(self):
        return {key: len(rows) for key, rows in self.transcripts.items()}

    async def rows(self, session: str, first: int = 1, limit: int | None = None):
        self.reads += 1
        if session not in self.transcripts:
            raise NotFound(f"there is no session {session}")
        found = [r for r in self.transcripts[session] if r.seq >= first]
        return tuple(found[:limit])

    async def last_asked(self, session: str, start: str) -> str:
        return next((key for key in reversed(self.asked) if key.startswith(start)), "")

    async def cover(self, session: str, coverage: Coverage) -> None:
        self.covered.append(coverage)
        self.failures = 0

    async def flush_failed(self, session: str, reason: str) -> int:
        self.failures += 1
        return self.failures


def row_of(seq: int, role: str, content: str | tuple[Block, ...], turn: int | None = None) -> Row:
    blocks = (Text(content),) if isinstance(content, str) else content
    return Row(seq, RowRole(role), blocks, NOON, turn)


@pytest.fixture
def index():
    return DictIndex()


@pytest.fixture
def store():
    return ListStore()


@pytest.fixture
def row():
    return row_of
