"""A long look at everything does not keep a turn that has just ended waiting."""

from __future__ import annotations

import asyncio

import pytest

from agentd.memory.index.indexer import Indexer
from agentd.testing import FakeClock, MemoryWorkspace
from tests.memory.conftest import DictIndex

TURN = "sessions/chat:new.jsonl"


class Noting(DictIndex):
    """Calls `then` once, when the first path has been written; knows the order of all."""

    def __init__(self):
        super().__init__()
        self.order: list[str] = []
        self.then = lambda: None
        self.settling = asyncio.Event()

    async def replace(self, path, digest, chunks, since=1):
        await super().replace(path, digest, chunks, since)
        self.order.append(path)
        if len(self.order) == 1:
            self.then()

    async def settle(self):
        await self.settling.wait()


@pytest.fixture
def index():
    return Noting()


@pytest.fixture
def workspace():
    return MemoryWorkspace({f"memory/{n:03}.md": f"note {n}" for n in range(100)}, FakeClock())


@pytest.fixture
def indexer(index, workspace, store):
    index.settling.set()
    return Indexer(index, workspace, store, FakeClock())


@pytest.fixture
def a_turn(indexer, store, row):
    """Makes a turn end."""

    def end(session="chat:new"):
        seq = len(store.transcripts.get(session, ())) + 1
        store.add(session, row(seq, "user", "just said"))
        indexer.touch(session)

    return end


async def test_a_turn_is_indexed_between_the_notes(index, indexer, a_turn):
    index.then = a_turn
    await indexer.sync()
    assert index.order.index(TURN) <= 16
    assert len(index.order) == 101


async def test_a_turn_is_indexed_between_the_notes_of_a_rebuild(index, indexer, a_turn):
    await indexer.sync()
    index.order.clear()
    index.then = a_turn
    await indexer.rebuild()
    assert index.order.index(TURN) <= 16
    assert len(index.order) == 101


async def test_a_turn_is_indexed_between_other_transcripts(
    index, indexer, workspace, store, row, a_turn
):
    workspace.files.clear()
    for number in range(30):
        store.add(f"chat:{number}", row(1, "user", "said long ago"))
    index.then = a_turn
    await indexer.sync()
    assert index.order.index(TURN) == 1
    assert index.order.count(TURN) == 1
    assert len(index.order) == 31


async def test_a_turn_is_indexed_while_a_rebuild_still_embeds(index, indexer, a_turn):
    await indexer.sync()
    index.settling.clear()
    async with asyncio.TaskGroup() as tasks:
        rebuild = tasks.create_task(indexer.rebuild())
        while len(index.order) < 200:
            await asyncio.sleep(0)
        a_turn()
        async with asyncio.timeout(5):
            await indexer.wait_idle()
        assert index.order[-1] == TURN
        assert (await indexer.state()).state == "rebuilding"
        index.settling.set()
        await rebuild
    assert (await indexer.state()).state == "ready"


async def test_a_turn_that_could_not_be_indexed_in_between_is_indexed_later(
    index, indexer, store, a_turn
):
    class Full(Exception):
        pass

    def fail():
        a_turn()
        index.extend = broken

    async def broken(path, digest, chunks):
        del index.extend
        raise Full

    index.then = fail
    with pytest.raises(Full):
        await indexer.sync()
    assert indexer.is_behind
    await indexer.wait_idle()
    assert TURN in index.order
    assert len(set(index.order)) == 101
