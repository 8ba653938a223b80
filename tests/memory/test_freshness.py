"""Whether a search looks at the files itself, and what it finds where it does not."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime

import pytest

from agentd.core.search import SearchQuery
from agentd.core.tool import FileAction
from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import Reader
from agentd.memory.index.indexer import Indexer
from agentd.memory.recall import MemoryRecall
from agentd.memory.settings import IndexSettings
from agentd.testing import FakeClock, MemoryWorkspace
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

OWNER = Reader(SessionKey("main"), SessionKind.OWNER)


class LargeWorkspace(MemoryWorkspace):
    """Listing it takes `seconds`; `opened` lets its files be read, `reading` tells that they
    are.
    """

    def __init__(self, clock: FakeClock) -> None:
        super().__init__({"a.md": "first needle\n"}, clock)
        self.seconds = 0.2
        self.looks = 0
        self.opened = asyncio.Event()
        self.opened.set()
        self.reading = asyncio.Event()
        self._clock = clock

    async def tree(self, path: str, depth: int, reader: Reader):
        self.looks += 1
        await self._clock.advance(self.seconds)
        return await super().tree(path, depth, reader)

    async def look(self, paths, reader):
        self.reading.set()
        await self.opened.wait()
        return await super().look(paths, reader)


class Told:
    """What a watch tells."""

    def __init__(self) -> None:
        self.mark: int | None = 0

    def __call__(self) -> int | None:
        return self.mark


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def workspace(clock):
    return LargeWorkspace(clock)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def indexer(index, workspace, store, clock, told):
    indexer = Indexer(index, workspace, store, clock)
    indexer.trust(told)
    return indexer


@pytest.fixture
def search(index, indexer, store, workspace):
    recall = MemoryRecall(index, indexer, store, workspace, patience=1)

    async def search(text="needle"):
        found = await recall.search(SearchQuery(text), OWNER)
        return sorted(hit.chunk.path for hit in found.hits)

    return search


async def test_a_large_workspace_is_not_looked_at_while_nothing_is_told(workspace, search, told):
    assert await search() == ["a.md"]
    for _ in range(10):
        await search()
    assert workspace.looks == 1
    workspace.files["b.md"] = b"second needle\n"
    assert await search() == ["a.md"], "it is told a moment later"
    told.mark = 1
    assert await search() == ["a.md", "b.md"]
    assert workspace.looks == 2
    del workspace.files["a.md"]
    told.mark = 2
    assert await search() == ["b.md"]


async def test_a_small_one_is_looked_at_every_time(workspace, search):
    workspace.seconds = 0.002
    await search()
    workspace.files["b.md"] = b"second needle\n"
    assert await search() == ["a.md", "b.md"]


async def test_one_slow_look_at_a_small_one_does_not_count(workspace, search):
    workspace.seconds = 0.002
    await search()
    workspace.seconds = 0.2
    await search()
    workspace.files["b.md"] = b"second needle\n"
    assert await search() == ["a.md", "b.md"]


async def test_a_hint_of_what_a_search_has_taken_in_has_nothing_scanned(
    workspace, search, indexer, told
):
    await indexer.sync()
    workspace.files["b.md"] = b"second needle\n"
    told.mark = 1
    assert await search() == ["a.md", "b.md"]
    looks = workspace.looks
    indexer.hint()
    await indexer.wait_idle()
    assert workspace.looks == looks
    told.mark = 2
    indexer.hint()
    await indexer.wait_idle()
    assert workspace.looks == looks + 1


async def test_without_a_watch_every_search_looks(workspace, search, told):
    await search()
    told.mark = None
    workspace.files["b.md"] = b"second needle\n"
    assert await search() == ["a.md", "b.md"]
    told.mark = 0
    await search()
    assert workspace.looks == 3, "what happened meanwhile is not known"


async def test_a_look_that_was_not_ended_has_to_be_made_again(workspace, search, told):
    await search()
    workspace.files["b.md"] = b"second needle\n"
    told.mark = 1
    workspace.opened.clear()
    assert await search() == ["a.md"]
    workspace.opened.set()
    assert await search() == ["a.md", "b.md"]


async def test_what_the_regular_look_is_taking_in_is_waited_for(workspace, search, indexer):
    await search()
    workspace.files["b.md"] = b"second needle\n"
    workspace.opened.clear()
    workspace.reading.clear()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(indexer.sync())
        await workspace.reading.wait()
        asking = tasks.create_task(search())
        await asyncio.sleep(0)
        workspace.opened.set()
        assert await asking == ["a.md", "b.md"]


async def test_a_change_of_how_notes_are_cut_is_a_reason_to_look(workspace, search, indexer):
    await search()
    indexer.adopt(IndexSettings(chunker="lines"))
    await search()
    assert workspace.looks == 2


class Ticking(FakeClock):
    """Every look at it takes a while."""

    def monotonic(self) -> float:
        self._monotonic += 0.05
        return super().monotonic()


async def test_what_agentd_writes_itself_is_found_by_the_next_search(index, store, tmp_path):
    clock = Ticking()
    files = Files(tmp_path, WorkspaceSettings(), clock, {}, None)
    indexer = Indexer(index, files, store, clock)
    indexer.trust(lambda: files.writes)
    recall = MemoryRecall(index, indexer, store, files)

    async def found():
        hits = (await recall.search(SearchQuery("needle"), OWNER)).hits
        return sorted(hit.chunk.path for hit in hits)

    assert await found() == []
    (tmp_path / "outside.md").write_text("needle")
    assert await found() == [], "or else this test shows nothing"
    intent = await files.plan("own.md", FileAction.WRITE, b"needle\n")
    await files.apply(intent, OWNER)
    assert await found() == ["outside.md", "own.md"]


async def test_a_change_that_keeps_size_and_time_is_seen(index, store, tmp_path):
    note, time = tmp_path / "a.md", 10**18
    note.write_text("one")
    os.utime(note, ns=(time, time))
    clock = FakeClock(datetime.fromtimestamp(note.stat().st_ctime + 3600, UTC))
    files = Files(tmp_path, WorkspaceSettings(), clock, {}, None)

    async def texts(indexer):
        await indexer.sync()
        return [chunk.text for _, chunks in index.entries.values() for chunk in chunks]

    indexer = Indexer(index, files, store, clock)
    assert await texts(indexer) == ["one"]
    for said in ("two", "six"):
        before = note.stat().st_ctime_ns
        while note.stat().st_ctime_ns == before:  # the kernel's clock has ticks
            note.write_text(said)
            os.utime(note, ns=(time, time))
        assert await texts(indexer) == [said]
        indexer = Indexer(index, files, store, clock)  # after a restart, too


async def test_an_unchanged_file_is_not_read_again_after_a_restart(index, store, tmp_path):
    (tmp_path / "a.md").write_text("one")
    clock = FakeClock(datetime.fromtimestamp((tmp_path / "a.md").stat().st_ctime + 3600, UTC))

    class Counted(Files):
        """Counts what is read."""

        reads = 0

        async def look(self, paths, reader):
            Counted.reads += len(paths)
            return await super().look(paths, reader)

    files = Counted(tmp_path, WorkspaceSettings(), clock, {}, None)
    for _ in range(3):
        await Indexer(index, files, store, clock).sync()
    assert Counted.reads == 1
