from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from agentd.domain.memory import Source
from agentd.domain.message import ToolUse
from agentd.domain.turn import Kind, SessionKey
from agentd.domain.workspace import Reader
from agentd.errors import FileMissing, StorageError
from agentd.memory.indexer import Indexer
from agentd.memory.recall import MemoryRecall
from agentd.testing import FakeClock, MemoryWorkspace

OWNER = Reader(SessionKey("main"), Kind.MAIN)
GROUP = Reader(SessionKey("group:a"), Kind.GROUP)


class StampedWorkspace(MemoryWorkspace):
    """Tells when its files were last changed, as a real one does."""

    def __init__(self, files: dict[str, str], clock: FakeClock) -> None:
        super().__init__(files, clock)
        self.clock = clock
        self.stamps = dict.fromkeys(files, self._now())

    def write(self, path: str, text: str) -> None:
        self.files[path] = text.encode()
        self.stamps[path] = self._now()

    async def tree(self, path: str, depth: int, reader: Reader):
        found = await super().tree(path, depth, reader)
        return tuple(replace(e, mtime_ns=self.stamps.get(e.path, 0)) for e in found)

    def _now(self) -> int:
        return int(self.clock.now().timestamp()) * 10**9


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def workspace(clock):
    files = {"MEMORY.md": "likes tea\n", "SOUL.md": "be calm\n", "memory/2026-11-20.md": "- x\n"}
    return StampedWorkspace(files, clock)


@pytest.fixture
def indexer(index, workspace, store, clock):
    return Indexer(index, workspace, store, clock)


@pytest.fixture
def recall(index, indexer, store, workspace):
    return MemoryRecall(index, indexer, store, workspace)


def texts(index) -> dict[str, list[str]]:
    return {path: [c.text for c in chunks] for path, (_, chunks) in index.entries.items()}


async def test_the_index_follows_new_edited_and_deleted_files(index, indexer, workspace):
    await indexer.sync()
    workspace.write("memory/new.md", "fresh\n")
    workspace.write("MEMORY.md", "likes coffee\n")
    del workspace.files["SOUL.md"]
    await indexer.sync()
    assert texts(index) == {
        "MEMORY.md": ["likes coffee"],
        "memory/2026-11-20.md": ["- x"],
        "memory/new.md": ["fresh"],
    }


async def test_after_any_changes_it_equals_a_rebuild(index, indexer, workspace, store, row):
    for round_ in range(4):
        workspace.write(f"memory/{round_ % 2}.md", f"# a\n{round_}\n")
        seq = 2 * round_ + 1
        store.add("main", row(seq, "user", f"q{round_}", seq), row(seq + 1, "assistant", "a", seq))
        await indexer.sync()
    before = dict(index.entries)
    await indexer.rebuild()
    assert index.entries == before


async def test_unchanged_files_are_neither_read_nor_written_again(
    index, indexer, workspace, clock, store
):
    await indexer.sync()
    await clock.advance(10)
    await indexer.sync()
    workspace.reads.clear()
    changes, reads = index.changes, store.reads
    await indexer.sync()
    assert (workspace.reads, index.changes, store.reads) == ([], changes, reads)


async def test_a_second_edit_within_one_time_stamp_is_seen(index, indexer, workspace):
    await indexer.sync()
    workspace.write("MEMORY.md", "likes milk\n")
    await indexer.sync()
    workspace.write("MEMORY.md", "likes wine\n")
    await indexer.sync()
    assert texts(index)["MEMORY.md"] == ["likes wine"]


async def test_a_restart_takes_over_what_is_indexed(index, indexer, workspace, store, clock):
    await indexer.sync()
    changes = index.changes
    await Indexer(index, workspace, store, clock).sync()
    assert index.changes == changes


async def test_what_the_index_leaves_out_is_named(index, indexer, workspace):
    workspace.write("memory/big.md", "x" * (1024 * 1024 + 1))
    workspace.write("memory/odd.md", "x")
    workspace.files["memory/odd.md"] = b"\xff\xfe"
    workspace.write("photo.jpg", "no text")
    await indexer.sync()
    assert sorted(p.code for p in indexer.problems()) == ["note_too_large", "note_unreadable"]
    assert not {"memory/big.md", "memory/odd.md", "photo.jpg"} & index.entries.keys()
    workspace.write("memory/big.md", "small")
    del workspace.files["memory/odd.md"]
    await indexer.sync()
    assert indexer.problems() == ()
    assert texts(index)["memory/big.md"] == ["small"]


async def test_a_turn_is_indexed_within_a_second_of_its_end(index, indexer, store, row, clock):
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.settle()
        store.add("main", row(1, "user", "hello there", 1))
        indexer.touch(SessionKey("main"))
        await clock.advance(1)
        assert "sessions/main.jsonl" not in index.entries
        calling = (ToolUse("c", "memory_read", {}),)
        store.add("main", row(2, "assistant", calling, 1), row(3, "assistant", "general", 1))
        indexer.touch(SessionKey("main"))
        await clock.advance(1)
        assert texts(index)["sessions/main.jsonl"] == ["[user] hello there\n[assistant] general"]
        running.cancel()


async def test_turns_that_end_together_are_indexed_together(index, indexer, store, row, clock):
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.settle()
        for turn in range(1, 4):
            store.add("main", row(2 * turn, "user", "hello", turn))
            store.add("main", row(2 * turn + 1, "assistant", "hi", turn))
            indexer.touch(SessionKey("main"))
            await clock.advance(0.05)
            assert "sessions/main.jsonl" not in index.entries
        await clock.advance(0.2)
        assert len(texts(index)["sessions/main.jsonl"]) == 3
        running.cancel()


async def test_the_loop_looks_at_everything_every_half_minute(index, indexer, workspace, clock):
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.settle()
        workspace.write("memory/new.md", "by hand\n")
        await clock.advance(29)
        assert "memory/new.md" not in index.entries
        await clock.advance(2)
        assert "memory/new.md" in index.entries
        running.cancel()


async def test_the_loop_outlives_a_failing_store(index, workspace, store, clock):
    class Failing(type(index)):
        broken = True

        async def digests(self, source):
            if self.broken:
                raise StorageError("locked", cure="wait")
            return await super().digests(source)

    failing = Failing()
    indexer = Indexer(failing, workspace, store, clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.settle()
        assert [p.code for p in indexer.problems()] == ["indexing_failed"]
        failing.broken = False
        await clock.advance(30)
        assert indexer.problems() == ()
        assert "MEMORY.md" in failing.entries
        running.cancel()


async def test_waiting_until_idle_does_what_is_due(index, indexer, store, row):
    assert (await indexer.state()).state == "indexing"
    await indexer.wait_idle()
    state = await indexer.state()
    assert (state.pending, state.state, state.files) == (0, "ready", 3)


async def test_a_long_transcript_comes_in_as_a_whole(index, indexer, store, row):
    for n in range(1, 1000):
        store.add("chat:x", row(n, "user" if n % 3 == 1 else "assistant", f"w{n}."))
    await indexer.sync()
    joined = "\n".join(texts(index)["sessions/chat:x.jsonl"])
    assert all(f" w{n}." in joined for n in range(1, 1000))
    assert (await index.digests(Source.SESSIONS))["sessions/chat:x.jsonl"] == "999"


async def test_deleted_and_restarted_sessions_lose_their_old_words(index, indexer, store, row):
    for n in range(1, 5):
        store.add("chat:x", row(n, "user", f"old{n}"))
    await indexer.sync()
    store.transcripts["chat:x"] = [row(1, "user", "new1")]
    await indexer.sync()
    assert texts(index)["sessions/chat:x.jsonl"] == ["[user] new1"]
    del store.transcripts["chat:x"]
    await indexer.sync()
    assert "sessions/chat:x.jsonl" not in index.entries


async def test_a_session_that_was_deleted_is_erased_at_once(index, indexer, store, row):
    store.add("chat:x", row(1, "user", "old"))
    await indexer.sync()
    del store.transcripts["chat:x"]
    indexer.touch("chat:x")
    await indexer.forget("chat:x")
    assert index.erased == ["sessions/chat:x.jsonl"]
    assert "sessions/chat:x.jsonl" not in index.entries
    assert not indexer.is_behind
    await indexer.forget("chat:never")
    assert index.erased == ["sessions/chat:x.jsonl"]


async def test_others_find_neither_private_notes_nor_transcripts(
    indexer, recall, workspace, store, row
):
    workspace.write("SOUL.md", "needle shared\n")
    workspace.write("memory/a.md", "needle private\n")
    store.add("main", row(1, "user", "needle said"))
    store.add("group:a", row(1, "user", "needle in group"))
    await indexer.sync()
    own = await recall.search("needle", Kind.MAIN, 10)
    assert len(own.hits) == 4
    assert own.hits[-1].chunk.source is Source.SESSIONS
    assert own.hits[0].chunk.source is Source.NOTES
    for kind in (Kind.GROUP, Kind.ISOLATED):
        found = await recall.search("needle", kind, 10)
        assert [h.chunk.path for h in found.hits] == ["SOUL.md"]
        only = await recall.search("needle", kind, 10, frozenset({Source.SESSIONS}))
        assert (only.hits, only.reason) == ((), "no_match")


async def test_a_note_is_found_as_soon_as_it_is_saved(indexer, recall, workspace):
    await indexer.sync()
    workspace.write("memory/a.md", "needle\n")
    assert len((await recall.search("needle", Kind.MAIN, 5)).hits) == 1
    workspace.write("memory/a.md", "thread\n")
    assert (await recall.search("needle", Kind.MAIN, 5)).hits == ()


async def test_emptiness_before_the_first_look_says_so(recall):
    assert (await recall.search("needle", Kind.MAIN, 5)).reason == "indexing"


async def test_a_transcript_reads_as_a_file_for_the_owner_alone(recall, store, row):
    store.add("main", row(1, "user", "hi"))
    view = await recall.read("sessions/main.jsonl", OWNER)
    assert view.text.startswith('{"role": "user", "content": [{"type": "text", "text": "hi"}]')
    assert view.text.count("\n") == 1
    for path, reader in (
        ("sessions/main.jsonl", GROUP),
        ("sessions/group:a.jsonl", GROUP),
        ("sessions/none.jsonl", OWNER),
        ("MEMORY.md", GROUP),
    ):
        with pytest.raises(FileMissing) as caught:
            await recall.read(path, reader)
        assert caught.value.message == f"there is no file {path}"
    assert (await recall.read("MEMORY.md", OWNER)).text == "likes tea\n"


async def test_indexing_does_not_count_as_the_sessions_reading(indexer, workspace, clock):
    clock.jump(timedelta(minutes=1))
    await indexer.sync()
    intent = await workspace.plan("MEMORY.md", "write", b"x")
    assert not await workspace.has_seen("MEMORY.md", intent.before, OWNER)
