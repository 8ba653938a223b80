"""Indexing everything again: nothing is missing meanwhile, and nothing that is gone stays."""

from __future__ import annotations

import pytest

from agentd.core.errors import StorageError, StorageFull
from agentd.core.search import OWNER, SearchQuery, SearchResult, Source
from agentd.core.turn import MAIN, SessionKind
from agentd.core.workspace import Reader
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.patient_embedder import patient
from agentd.memory.recall import MemoryRecall
from agentd.memory.settings import IndexSettings
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock, HashEmbedder, MemoryWorkspace

EYES = Reader(MAIN, SessionKind.OWNER)
CODES = {3: "4417", 9: "7715", 17: "9023"}


class Crash(BaseException):
    """The process ends."""


class Watched(SqliteChunks):
    """Calls `before` with each path that is about to be replaced."""

    before = staticmethod(lambda path: None)
    replaced: list[str]

    async def replace(self, path, digest, entries, since=1):
        await self.before(path)
        self.replaced.append(path)
        return await super().replace(path, digest, entries, since)


async def nothing(path):
    pass


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def workspace(clock):
    notes = {
        f"memory/2026-11-{day:02}.md": f"- the boiler code is {code}\n"
        for day, code in CODES.items()
    }
    return MemoryWorkspace({**notes, "MEMORY.md": "likes tea\n"}, clock)


@pytest.fixture
async def chunks(tmp_path):
    async with Database.open(tmp_path / "index.db", INDEX, synchronous="NORMAL") as db:
        chunks = Watched(db)
        chunks.before, chunks.replaced = nothing, []
        yield chunks


@pytest.fixture
async def live(chunks, clock):
    async with LiveIndex.open(chunks, clock, patient([HashEmbedder()], clock)) as index:
        yield index


@pytest.fixture
async def indexer(live, workspace, store, clock, row):
    for n in range(1, 1000):
        store.add("main", row(n, "user" if n % 3 == 1 else "assistant", f"word{n} is said."))
    indexer = Indexer(live, workspace, store, clock)
    await indexer.sync()
    await live.settle()
    return indexer


async def answers(index):
    questions = ("boiler code", "what do I like", "word3", "word700")
    return [await index.search(SearchQuery(question, limit=5), OWNER) for question in questions]


async def test_a_rebuild_changes_no_answer_at_any_time(live, chunks, indexer):
    before, ids = await answers(live), await chunks.ids()
    assert "9023" in before[0].hits[0].chunk.text
    seen = []

    async def look(path):
        seen.append((await answers(live), (await indexer.state()).state))

    chunks.before, chunks.replaced = look, []
    await indexer.rebuild()
    assert sorted(chunks.replaced) == [
        *("MEMORY.md", "memory/2026-11-03.md", "memory/2026-11-09.md", "memory/2026-11-17.md"),
        "sessions/main.jsonl",
    ]
    assert seen == [(before, "rebuilding")] * 5
    assert await answers(live) == before
    assert (await chunks.ids(), (await indexer.state()).state) == (ids, "ready")


async def test_a_rebuild_returns_with_vectors_or_once_words_find_everything(
    chunks, clock, workspace, store
):
    async with LiveIndex.open(
        chunks, clock, patient([HashEmbedder(32), HashEmbedder()], clock)
    ) as live:
        indexer = Indexer(live, workspace, store, clock)
        await indexer.rebuild(vectors=False)
        state = await indexer.state()
        assert (state.chunks, state.vectors, state.state) == (4, 4, "embedding")
        await indexer.rebuild()
        assert (await indexer.state()).vectors == 0


async def test_a_search_on_a_full_disk_finds_what_is_indexed(
    live, chunks, indexer, workspace, store
):
    async def full(path):
        raise StorageFull("there is no room on the disk", cure="make some")

    chunks.before = full
    workspace.files["memory/2026-11-20.md"] = b"- the boiler code is 1234\n"
    recall = MemoryRecall(live, indexer, store, workspace)
    found = await recall.search(SearchQuery("boiler code"), EYES)
    assert ("9023" in found.hits[0].chunk.text, found.reason) == (True, "indexing")
    chunks.before = nothing
    found = await recall.search(SearchQuery("boiler code"), EYES)
    assert ("1234" in found.hits[0].chunk.text, found.reason) == (True, "")


async def test_a_rebuild_mends_what_is_wrong_in_the_index(live, chunks, indexer, workspace, clock):
    before = await answers(live)
    known = await chunks.digests(Source.NOTES)
    wrong = [row.chunk for row in await chunks.load(0, 1, OWNER)]
    await live.replace("memory/2026-11-17.md", "", [])
    await live.replace("gone.md", "d", wrong)
    await live.replace("sessions/gone.jsonl", "d", [])
    await indexer.rebuild()
    assert await answers(live) == before
    assert {path: digest.partition("@")[0] for path, digest in known.items()} == {
        path: digest.partition("@")[0]
        for path, digest in (await chunks.digests(Source.NOTES)).items()
    }
    assert set(await chunks.digests(Source.SESSIONS)) == {"sessions/main.jsonl"}


@pytest.mark.parametrize("end", [Crash, StorageError("full", cure="make room")])
async def test_a_rebuild_that_is_cut_short_goes_on(live, chunks, indexer, workspace, store, end):
    before = await answers(live)

    async def fail(path):
        if len(chunks.replaced) == 2:
            raise end

    chunks.before, chunks.replaced = fail, []
    with pytest.raises((Crash, StorageError)):
        await indexer.rebuild()
    assert await answers(live) == before
    chunks.before, done = nothing, chunks.replaced
    chunks.replaced = []
    if end is Crash:
        indexer = Indexer(live, workspace, store, FakeClock())
    await indexer.wait_idle()
    assert len({*done, *chunks.replaced}) == 5
    if end is Crash:
        assert len(done) + len(chunks.replaced) == 5
    assert await answers(live) == before
    assert (await indexer.state()).state == "ready"


async def test_another_chunker_says_rebuilding_and_hides_nothing(
    live, chunks, indexer, workspace, store, clock
):
    words = []

    async def look(path):
        words.append((await other.state()).state)
        assert (await live.search(SearchQuery("boiler code"), OWNER)).hits

    chunks.before = look
    other = Indexer(live, workspace, store, clock, IndexSettings(chunker="lines"))
    await other.wait_idle()
    assert words == ["rebuilding"] * 4
    assert (await other.state()).state == "ready"


async def test_a_lost_index_is_built_again_while_memory_answers(
    live, chunks, indexer, workspace, store, tmp_path
):
    before = await answers(live)
    for part, content in (("index.db", b"nonsense" * 10_000), ("index.db-wal", b"")):
        (tmp_path / part).write_bytes(content)
    seen = []

    async def look(path):
        seen.append(await answers(live))

    chunks.before = look
    recall = MemoryRecall(live, indexer, store, workspace)
    await indexer.sync()
    assert live.epoch == 1
    assert len(seen) == 4
    for found in seen:
        assert [f.hits for f in found] == [f.hits for f in before]
        assert {f.reason for f in found} == {"indexing"}
    assert [f.hits for f in await answers(live)] == [f.hits for f in before]
    assert (await recall.search(SearchQuery("boiler code"), EYES)).reason == ""


@pytest.mark.parametrize(
    ("reason", "in_time", "late"),
    [
        ("warming", "warming", "warming"),
        ("embedder_down", "embedder_down", "indexing"),
        ("no_match", "indexing", "indexing"),
        ("below_threshold", "below_threshold", "indexing"),
        ("budget", "budget", "budget"),
        ("", "", "indexing"),
    ],
)
async def test_the_reason_that_weighs_most_is_named(
    indexer, workspace, store, reason, in_time, late
):
    class Told:
        epoch = 0

        async def search(self, query, audience):
            return SearchResult((), reason)

    indexer.touch("main")
    recall = MemoryRecall(Told(), indexer, store, workspace, patience=0.0)
    assert (await recall.search(SearchQuery("tea"), EYES)).reason == in_time
    async with indexer._notes._lock:
        assert (await recall.search(SearchQuery("tea"), EYES)).reason == late


async def test_damage_that_a_search_finds_is_mended_at_once(live, indexer, workspace, store, clock):
    class Damaged:
        epoch = 0

        async def search(self, query, audience):
            self.epoch = 1
            return SearchResult((), "indexing")

    await MemoryRecall(Damaged(), indexer, store, workspace).search(SearchQuery("x"), EYES)
    assert indexer.is_behind
