"""Indexes for the tests of search."""

from __future__ import annotations

from datetime import date

import pytest

from agentd.core.search import Chunk, Source
from agentd.memory.index.search.live import LiveIndex
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock

NOTE = "memory/2026-11-21.md"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def chunk():
    """Makes chunks."""

    def make(text, path=NOTE, line=1, source=Source.NOTES, scope="", **more):
        day = date(2026, 11, 21)
        return Chunk(path, line, line + 2, text, source, scope, day, **more)

    return make


@pytest.fixture
async def store(tmp_path):
    async with Database.open(tmp_path / "index.db", INDEX, synchronous="NORMAL") as db:
        yield SqliteChunks(db)


@pytest.fixture
async def index(store, clock):
    """An index without an embedder."""
    async with LiveIndex.open(store, clock) as index:
        yield index
