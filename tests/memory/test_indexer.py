from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from agentd.core.errors import FileMissing, StorageError
from agentd.core.message import ToolUse
from agentd.core.search import OWNER as OWNERS_EYES
from agentd.core.search import SearchQuery, Source
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.core.workspace import Reader, TreeEntry
from agentd.memory.index.chunks import BOILERPLATE, PARAGRAPHS, Chunker
from agentd.memory.index.indexer import Indexer
from agentd.memory.index.notes import NoteIndexer
from agentd.memory.recall import MemoryRecall
from agentd.memory.settings import IndexSettings
from agentd.testing import FakeClock, MemoryWorkspace

OWNER = Reader(SessionKey("main"), SessionKind.OWNER)
GROUP = Reader(SessionKey("group:a"), SessionKind.GROUP)
TRANSCRIPTS = frozenset({Source.SESSIONS})


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


async def test_a_restart_reads_no_file_that_is_as_it_was(index, indexer, workspace, store, clock):
    await clock.advance(10)
    workspace.write("memory/young.md", "young\n")
    await indexer.sync()
    workspace.reads.clear()
    await Indexer(index, workspace, store, clock).sync()
    assert workspace.reads == ["memory/young.md"]
    await clock.advance(10)
    await Indexer(index, workspace, store, clock).sync()
    workspace.write("MEMORY.md", "likes milk\n")
    workspace.reads.clear()
    await Indexer(index, workspace, store, clock).sync()
    assert workspace.reads == ["MEMORY.md"]
    assert texts(index)["MEMORY.md"] == ["likes milk"]
    assert texts(index)["memory/young.md"] == ["young"]


async def test_what_cannot_be_read_is_left_out_and_looked_at_until_it_goes(
    index, indexer, workspace
):
    workspace.write("memory/odd.md", "x")
    await indexer.sync()
    workspace.files["memory/odd.md"] = b"\xff\xfe"
    workspace.write("photo.jpg", "no text")
    await indexer.sync()
    assert not {"memory/odd.md", "photo.jpg"} & index.entries.keys()
    assert indexer.problems() == ()  # the workspace names its files itself
    del workspace.files["memory/odd.md"]
    workspace.reads.clear()
    for _ in range(2):
        await indexer.sync()
    assert workspace.reads.count("memory/odd.md") == 1


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
        assert texts(index)["sessions/main.jsonl"] == ["hello there", "general"]
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
        assert len(texts(index)["sessions/main.jsonl"]) == 6
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


async def test_the_loop_outlives_a_fault_of_ours(index, workspace, store, clock):
    class Faulty(type(index)):
        broken = True

        async def digests(self, source):
            if self.broken:
                raise ZeroDivisionError
            return await super().digests(source)

    faulty = Faulty()
    indexer = Indexer(faulty, workspace, store, clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.settle()
        ((code, text),) = [(p.code, p.text) for p in indexer.problems()]
        assert (code, "ZeroDivisionError" in text) == ("indexing_failed", True)
        faulty.broken = False
        await clock.advance(30)
        assert indexer.problems() == ()
        assert "MEMORY.md" in faulty.entries
        running.cancel()


async def test_a_note_that_cannot_be_cut_is_named_and_keeps_no_other_out(index, workspace, clock):
    def pieces(lines):
        if "odd" in lines.text:
            raise ZeroDivisionError
        return PARAGRAPHS.pieces(lines)

    notes = NoteIndexer(index, workspace, clock, Chunker("fragile", pieces))
    await notes.sync()
    workspace.write("memory/2026-11-20.md", "- odd\n")
    workspace.write("memory/new.md", "by hand\n")
    for _ in range(2):
        await clock.advance(60)
        await notes.sync()
        assert texts(index)["memory/new.md"] == ["by hand"]
        assert texts(index)["memory/2026-11-20.md"] == ["- x"]  # as it was
        ((code, text),) = [(p.code, p.text) for p in notes.problems()]
        assert (code, text.split()[0]) == ("note_not_indexed", "memory/2026-11-20.md")
    workspace.write("memory/2026-11-20.md", "- even\n")
    await notes.sync()
    assert texts(index)["memory/2026-11-20.md"] == ["- even"]
    assert notes.problems() == ()


async def test_waiting_until_idle_does_what_is_due(index, indexer, store, row):
    assert (await indexer.state()).state == "indexing"
    await indexer.wait_idle()
    state = await indexer.state()
    assert (state.pending, state.state, state.files) == (0, "ready", 3)


async def test_a_long_transcript_comes_in_as_a_whole(index, indexer, store, row):
    for n in range(1, 1000):
        store.add("chat:x", row(n, "user" if n % 3 == 1 else "assistant", f"w{n}."))
    await indexer.sync()
    assert texts(index)["sessions/chat:x.jsonl"] == [f"w{n}." for n in range(1, 1000)]
    assert (await index.digests(Source.SESSIONS))["sessions/chat:x.jsonl"].endswith(":999")


async def test_deleted_and_restarted_sessions_lose_their_old_words(index, indexer, store, row):
    for n in range(1, 5):
        store.add("chat:x", row(n, "user", f"old{n}"))
    await indexer.sync()
    store.transcripts["chat:x"] = [row(1, "user", "new1")]
    await indexer.sync()
    assert texts(index)["sessions/chat:x.jsonl"] == ["new1"]
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


async def test_others_find_shared_notes_and_what_was_said_in_themselves(
    indexer, recall, workspace, store, row
):
    workspace.write("shared/a.md", "needle shared\n")
    workspace.write("memory/a.md", "needle private\n")
    store.add("main", row(1, "user", "needle said"))
    store.add("group:a", row(1, "user", "needle in group"))
    store.add("isolated:a", row(1, "user", "needle alone"))
    await indexer.sync()
    own = await recall.search(SearchQuery("needle", 10), OWNER)
    assert len(own.hits) == 5
    for key in ("group:a", "isolated:a"):
        reader = Reader(SessionKey(key), kind_of(key))
        found = await recall.search(SearchQuery("needle", 10), reader)
        assert {h.chunk.path for h in found.hits} == {"shared/a.md", f"sessions/{key}.jsonl"}
        only = await recall.search(SearchQuery("needle", 10, TRANSCRIPTS), reader)
        assert [h.chunk.path for h in only.hits] == [f"sessions/{key}.jsonl"]
    other = Reader(SessionKey("group:b"), SessionKind.GROUP)
    assert (await recall.search(SearchQuery("needle", 10, TRANSCRIPTS), other)).reason == "no_match"


async def test_a_turn_that_is_not_the_owners_finds_no_conversation_of_his_sessions(
    indexer, recall, workspace, store, row
):
    workspace.write("shared/a.md", "needle shared\n")
    store.add("main", row(1, "user", "needle said"))
    await indexer.sync()
    beat = Reader(SessionKey("main"), SessionKind.ISOLATED)
    found = await recall.search(SearchQuery("needle", 10), beat)
    assert [h.chunk.path for h in found.hits] == ["shared/a.md"]
    only = await recall.search(SearchQuery("needle", 10, TRANSCRIPTS), beat)
    assert (only.hits, only.reason) == ((), "scope")
    with pytest.raises(FileMissing):
        await recall.read("sessions/main.jsonl", beat)


async def test_a_note_is_found_as_soon_as_it_is_saved(indexer, recall, workspace):
    await indexer.sync()
    workspace.write("memory/a.md", "needle\n")
    assert len((await recall.search(SearchQuery("needle", 5), OWNER)).hits) == 1
    workspace.write("memory/a.md", "thread\n")
    assert (await recall.search(SearchQuery("needle", 5), OWNER)).hits == ()


async def test_emptiness_before_the_first_look_says_so(recall):
    assert (await recall.search(SearchQuery("needle", 5), OWNER)).reason == "indexing"


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


async def test_another_chunker_cuts_every_note_again_while_the_old_pieces_are_found(
    index, workspace, store, clock
):
    seen: list[bool] = []

    class Watched(type(index)):
        async def replace(self, path, digest, chunks, since=1):
            seen.append(len(self.entries) == 4 and all(c for _, c in self.entries.values()))
            await super().replace(path, digest, chunks, since)

    index = Watched()
    workspace.write("memory/long.md", "\n\n".join(["a paragraph of some few words and more"] * 3))
    await Indexer(index, workspace, store, clock).sync()
    assert len(texts(index)["memory/long.md"]) == 3
    seen.clear()
    other = Indexer(index, workspace, store, clock, IndexSettings(chunker="lines"))
    await other.sync()
    assert len(texts(index)["memory/long.md"]) == 1
    assert seen == [True] * 4
    changes = index.changes
    await Indexer(index, workspace, store, clock, IndexSettings(chunker="lines")).sync()
    assert index.changes == changes


async def test_notes_are_cut_in_the_way_that_is_adopted_while_it_runs(
    index, indexer, workspace, store, clock
):
    workspace.write("MEMORY.md", "\n\n".join(["a paragraph of some few words and more"] * 3))
    await indexer.sync()
    before, changes = texts(index)["MEMORY.md"], index.changes
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.advance(1)
        indexer.adopt(IndexSettings())
        await clock.advance(1)
        assert (index.changes, texts(index)["MEMORY.md"]) == (changes, before)
        indexer.adopt(IndexSettings(chunker="lines"))
        assert texts(index)["MEMORY.md"] == before
        async with asyncio.timeout(5):
            while len(texts(index)["MEMORY.md"]) != 1:
                await clock.advance(1)
        running.cancel()
    assert len(before) == 3


async def test_shipped_files_are_cut_again_when_what_is_shipped_changes(
    index, workspace, store, clock
):
    workspace.write("SOUL.md", "be calm\n")
    await Indexer(index, workspace, store, clock).sync()
    for lines, importance in (({"be calm"}, BOILERPLATE), ({"be brave"}, 1.0)):
        changes = index.changes
        shipped = {"SOUL.md": frozenset(lines)}
        await Indexer(index, workspace, store, clock, shipped=shipped).sync()
        assert index.entries["SOUL.md"][1][0].importance == importance
        assert index.changes == changes + 1  # no other note is cut again


@pytest.mark.parametrize("count", [2, 900])
async def test_a_transcript_that_was_cut_in_another_way_is_cut_again(
    index, workspace, store, clock, row, count
):
    for n in range(1, count + 1):
        store.add("chat:x", row(n, "user" if n % 2 else "assistant", f"w{n}."))
    await Indexer(index, workspace, store, clock).sync()
    _, chunks = index.entries["sessions/chat:x.jsonl"]
    for old in (str(count), f"older-1:{count}"):
        await index.replace("sessions/chat:x.jsonl", old, chunks[:1])
        await Indexer(index, workspace, store, clock).sync()
        assert index.entries["sessions/chat:x.jsonl"][1] == chunks


@pytest.mark.parametrize("settings", [{"index_delta_messages": 4}, {"index_delta_bytes": 25}])
async def test_a_session_gathers_before_it_is_indexed_if_that_is_asked_for(
    index, workspace, store, clock, row, settings
):
    def turn(number):
        at = 2 * number - 1
        store.add(
            "main", row(at, "user", "question", number), row(at + 1, "assistant", "ok", number)
        )
        indexer.touch(SessionKey("main"))

    indexer = Indexer(index, workspace, store, clock, IndexSettings(**settings))
    turn(1)
    await indexer.wait_idle()
    assert len(texts(index)["sessions/main.jsonl"]) == 2
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        turn(2)
        await clock.advance(40)
        assert len(texts(index)["sessions/main.jsonl"]) == 2
        turn(3)
        await clock.advance(1)
        if "index_delta_bytes" in settings:
            assert len(texts(index)["sessions/main.jsonl"]) == 2
            turn(4)
            await clock.advance(1)
        expected = 6 if "index_delta_messages" in settings else 8
        assert len(texts(index)["sessions/main.jsonl"]) == expected
        turn(5)
        await clock.advance(1)
        assert len(texts(index)["sessions/main.jsonl"]) == expected
        running.cancel()
    await indexer.sync()
    assert texts(index)["sessions/main.jsonl"][-2:] == ["question", "ok"]


async def test_extra_files_without_a_date_are_of_the_day_of_their_last_change(index, store, clock):
    files = {
        "@manual/pump.md": "the pump hums",
        "@manual/2026-01-05.md": "the valve hums",
        "@work/tap.md": "the tap hums",
        "MEMORY.md": "the fridge hums",
    }
    workspace = StampedWorkspace(files, clock)
    settings = IndexSettings(extra_paths=("manual=/srv/manual",))
    indexer = Indexer(index, workspace, store, clock, settings)

    async def days():
        await indexer.sync()
        found = await index.search(SearchQuery("hums", limit=9), OWNERS_EYES)
        return {hit.chunk.path: str(hit.chunk.date) for hit in found.hits}

    assert await days() == {
        "@manual/pump.md": "2026-11-21",
        "@manual/2026-01-05.md": "2026-01-05",
        "@work/tap.md": "None",
        "MEMORY.md": "None",
    }
    await clock.advance(3 * 86_400)
    workspace.stamps["@manual/pump.md"] = workspace._now()  # touched, nothing else
    assert (await days())["@manual/pump.md"] == "2026-11-24"
    for beyond_all_calendars in (2**42 * 10**9, -(2**42) * 10**9, 2**70 * 10**9):
        workspace.stamps["@manual/pump.md"] = beyond_all_calendars
        assert (await days())["@manual/pump.md"] == "None"


async def test_transcripts_are_left_out_and_taken_in_as_the_switch_says(
    index, workspace, store, row, clock
):
    store.add("main", row(1, "user", "the needle lies there"), row(2, "assistant", "yes"))
    off, on = IndexSettings(index_transcripts=False), IndexSettings()
    indexer = Indexer(index, workspace, store, clock, off)
    await indexer.sync()
    assert await index.digests(Source.SESSIONS) == {}
    for settings, count in ((on, 1), (off, 0), (on, 1)):
        indexer.adopt(settings)
        await indexer.wait_idle()
        assert len(await index.digests(Source.SESSIONS)) == count
    indexer.adopt(off)
    indexer.touch("main")
    await indexer.wait_idle()
    assert await index.digests(Source.SESSIONS) == {}


async def test_a_hint_has_the_notes_looked_at_at_once(index, indexer, workspace, store, clock):
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.settle()
        workspace.write("memory/new.md", "by hand\n")
        reads = store.reads
        indexer.hint()
        await clock.advance(0.5)
        assert "memory/new.md" in index.entries
        assert store.reads == reads
        running.cancel()


async def test_a_folder_of_others_that_is_not_there_is_named_and_the_rest_is_indexed(
    index, store, clock
):
    class Half(StampedWorkspace):
        is_there = False

        async def tree(self, path, depth, reader):
            if path == "@disk" and not self.is_there:
                raise FileMissing("there is no '@disk' here", cure="mount it")
            found = await super().tree(path, depth, reader)
            return found if path else (*found, TreeEntry("@disk/", 0, is_dir=True))

    workspace = Half({"MEMORY.md": "likes tea\n"}, clock)
    indexer = Indexer(index, workspace, store, clock)
    await indexer.sync()
    assert [(p.code, p.cure) for p in indexer.problems()] == [("scope_unreadable", "mount it")]
    assert list(index.entries) == ["MEMORY.md"]
    workspace.is_there = True
    workspace.write("@disk/a.md", "found\n")
    await indexer.sync()
    assert indexer.problems() == ()
    assert "@disk/a.md" in index.entries


async def test_what_is_left_to_do_can_be_seen(index, workspace, store, clock, row):
    left: list[int] = []

    class Asking(type(index)):
        async def replace(self, path, digest, chunks, since=1):
            left.append((await indexer.state()).pending)
            await super().replace(path, digest, chunks, since)

    for n in range(200):
        workspace.write(f"memory/{n}.md", "x\n")
    asking = Asking()
    indexer = Indexer(asking, workspace, store, clock)
    await indexer.sync()
    assert max(left) > 190
    assert left == sorted(left, reverse=True)
    assert (await indexer.state()).pending == 0


async def test_what_could_not_be_written_is_raised_and_tried_again(index, workspace, store, clock):
    class Full(type(index)):
        is_full = True

        async def replace(self, path, digest, chunks, since=1):
            if self.is_full:
                raise StorageError("the disk is full", cure="free some space")
            await super().replace(path, digest, chunks, since)

    full = Full()
    indexer = Indexer(full, workspace, store, clock)
    with pytest.raises(StorageError, match="full"):
        await indexer.sync()
    assert indexer.is_behind
    full.is_full = False
    await indexer.wait_idle()
    assert len(full.entries) == 3


async def test_notes_that_change_all_the_time_are_looked_at_a_tenth_of_it_and_turns_do_not_wait(
    index, workspace, store, clock, row
):
    looks = []

    class Slow(type(workspace)):
        async def tree(self, *args):
            looks.append(clock.monotonic())
            await clock.sleep(0.1)
            return await super().tree(*args)

    slow = Slow({}, clock)
    slow.__dict__.update(workspace.__dict__)
    indexer = Indexer(index, slow, store, clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(indexer.run())
        await clock.advance(1)
        assert len(looks) == 1
        for _ in range(40):
            indexer.hint()
            await clock.advance(0.1)
        assert 3 <= len(looks) <= 6
        indexer.hint()
        store.add("main", row(1, "user", "hello there", 1), row(2, "assistant", "general", 1))
        indexer.touch(SessionKey("main"))
        await clock.advance(0.6)
        assert texts(index)["sessions/main.jsonl"] == ["hello there", "general"]
        running.cancel()


@pytest.mark.parametrize("is_copied", [False, True])
async def test_the_first_change_of_the_page_of_facts_after_a_restart_is_one_of_its_lines(
    index, workspace, store, clock, is_copied
):
    class Watched(type(index)):
        patches = ()

        async def patch(self, path, digest, patches):
            self.patches = patches
            await super().patch(path, digest, patches)

    watched, page = Watched(), "memory/facts.md"
    lines = [f"- tea number {n}" for n in range(20)]
    workspace.write(page, "\n".join(lines))
    await clock.advance(10)
    await Indexer(watched, workspace, store, clock).sync()
    await clock.advance(10)
    if is_copied:  # as a restored backup is: other time stamps
        workspace.write(page, "\n".join(lines))
    await clock.advance(10)
    again = Indexer(watched, workspace, store, clock)
    await again.sync()
    del lines[7]
    workspace.write(page, "\n".join(lines))
    await again.sync()
    assert [(one.first, one.end, one.count, one.pieces) for one in watched.patches] == [
        (8, 9, 0, ())
    ]
    assert texts(watched)[page] == [line.removeprefix("- ") for line in lines]
    workspace.write(page, "\n".join(lines[:5]))  # while no daemon runs
    watched.patches = ()
    await Indexer(watched, workspace, store, clock).sync()
    assert texts(watched)[page] == [line.removeprefix("- ") for line in lines[:5]]
    assert watched.patches == (), "nothing is known of the lines before"
