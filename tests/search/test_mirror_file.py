"""The file from which a start takes what the index had in memory."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import zlib
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agentd.core.search import MOVES, OWNER, LinePatch, SearchOptions, SearchQuery
from agentd.memory.index.embedding.lazy_static import packaged_static
from agentd.memory.index.search import words
from agentd.memory.index.search.arrays import Unusable, _table, read, strings, write
from agentd.memory.index.search.audiences import Mirrors
from agentd.memory.index.search.entries import entry
from agentd.memory.index.search.live import LiveIndex
from agentd.memory.index.search.mirror_file import LEAST
from agentd.memory.index.search.patient_embedder import patient
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database

MODEL = "table"
SIZE = LEAST + 100
OPTIONS = SearchOptions(limit=20)
ASKED = ("harbour tea 7", "kettle 41 in sessions", "quince", "harbour")


def said(number):
    words = ("harbour", "kettle", "quince", "lamp", "tea")
    return f"{words[number % 5]} {words[number % 3]} {number} thing{number % 97}"


@asynccontextmanager
async def opened(folder):
    """A store with its mirrors, as at a start."""
    async with Database.open(folder / "index.db", INDEX, synchronous="NORMAL") as db:
        store = SqliteChunks(db)
        async with Mirrors.open(store, [MODEL], folder / "index.arrays") as mirrors:
            yield store, mirrors


async def put(store, chunk, numbers, path="memory/a.md"):
    """Chunks with vectors; gives what was said."""
    entries = [entry(chunk(said(n), path, line=n + 1)) for n in numbers]
    await store.extend(path, "d", entries)
    await put_vectors(store, entries)
    return entries


async def put_vectors(store, entries):
    rows = await packaged_static().embed([one.chunk.text for one in entries])
    digests = [one.digest for one in entries]
    return await store.put_vectors(MODEL, dict(zip(digests, map(halved, rows), strict=True)))


def halved(row):
    import numpy as np

    return np.frombuffer(row, "<f4").astype("<f2").tobytes()


async def answers(mirrors):
    """Whatever is asked, what is found and how sure."""
    vectors = await packaged_static().embed(list(ASKED))
    return [
        await mirrors.search(OWNER, [text], own, MODEL, OPTIONS)
        for text, vector in zip(ASKED, vectors, strict=True)
        for own in (None, [vector])
    ]


async def from_the_store(folder):
    """What a start finds that has no file."""
    apart = folder.parent / f"{folder.name}-apart"
    shutil.rmtree(apart, ignore_errors=True)
    apart.mkdir()
    shutil.copy(folder / "index.db", apart)
    async with opened(apart) as (_, mirrors):
        return await answers(mirrors)


async def from_the_file(folder):
    """What a start finds, and whether it took it from the file."""
    with capture_logs() as logs:
        async with opened(folder) as (_, mirrors):
            found = await answers(mirrors)
    return found, not any(one["event"] == "mirror_not_restored" for one in logs)


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    """A folder with a store and the file of its mirror."""
    from datetime import date

    from agentd.core.search import Chunk, Source

    def chunk(text, path, line):
        speaker = "Ann" if line % 2 else ""
        day = date(2026, 11, 21)
        return Chunk(path, line, line + 2, text, Source.NOTES, "", day, speaker=speaker)

    folder = tmp_path_factory.mktemp("saved")

    async def make():
        async with opened(folder) as (store, mirrors):
            for first in range(0, SIZE, 500):
                numbers = range(first, min(first + 500, SIZE))
                await put(store, chunk, numbers, f"memory/{first}.md")
            await mirrors.ready(OWNER)
            assert await mirrors.save()

    asyncio.run(make())
    return folder


@pytest.fixture
def saved(saved_once, tmp_path):
    folder = tmp_path / "state"
    shutil.copytree(saved_once, folder)
    return folder


async def test_a_start_finds_from_the_file_what_it_finds_from_the_store(saved):
    file = saved / "index.arrays"
    assert file.stat().st_mode & 0o777 == 0o600
    found, was_used = await from_the_file(saved)
    assert was_used
    assert found == await from_the_store(saved)
    assert any(answer.hits for answer in found)


async def test_what_came_went_and_was_embedded_since_is_level(saved, chunk):
    async with opened(saved) as (store, _):
        late = [entry(chunk(said(n), "memory/late.md", line=n)) for n in range(9000, 9040)]
        await store.extend("memory/late.md", "d", late)
        await store.replace("memory/500.md", "d", [entry(chunk("quince 7 jam", "memory/500.md"))])
        await store.remove(["memory/1500.md"])
    found, was_used = await from_the_file(saved)
    assert was_used
    assert found == await from_the_store(saved)
    async with opened(saved) as (store, mirrors):
        await mirrors.ready(OWNER)
        await put_vectors(store, late)  # while nobody could be told
    found, was_used = await from_the_file(saved)
    assert was_used
    assert found == await from_the_store(saved)


async def test_vectors_that_were_made_after_it_was_written_are_there(tmp_path, chunk):
    async with opened(tmp_path) as (store, mirrors):
        entries = [entry(chunk(said(n), line=n + 1)) for n in range(SIZE)]
        await store.extend("memory/a.md", "d", entries)
        await put_vectors(store, entries[: SIZE // 2])
        await mirrors.ready(OWNER)
        assert await mirrors.save()
        await put_vectors(store, entries[SIZE // 2 :])
    found, was_used = await from_the_file(tmp_path)
    assert was_used
    assert found == await from_the_store(tmp_path)


async def test_a_restored_mirror_goes_on_like_any_other(saved, chunk):
    async with opened(saved) as (store, mirrors):
        before = await answers(mirrors)
        new = [entry(chunk(said(n), "memory/0.md", line=n + 1)) for n in range(20_000, 21_400)]
        await mirrors.change(store.replace("memory/0.md", "d", new))
        await mirrors.put_vectors(MODEL, await put_vectors(store, new))
        await mirrors.change(store.remove(["memory/1000.md"]), ["memory/1000.md"])
        after = await answers(mirrors)
        assert before != after
        assert await mirrors.save()
    assert after == await from_the_store(saved)
    found, was_used = await from_the_file(saved)
    assert was_used
    assert found == after


def flip(file, at):
    """Change one bit."""
    with file.open("r+b") as bytes_:
        bytes_.seek(at)
        (old,) = bytes_.read(1)
        bytes_.seek(at)
        bytes_.write(bytes([old ^ 16]))


async def test_a_damaged_file_is_noticed_and_made_again(saved):
    file = saved / "index.arrays"
    flip(file, file.stat().st_size // 2)
    found, was_used = await from_the_file(saved)
    assert not was_used
    assert found == await from_the_store(saved)
    assert not file.exists()
    async with opened(saved) as (_, mirrors):
        await mirrors.ready(OWNER)
        assert await mirrors.save()
    assert (await from_the_file(saved))[1]


async def test_damage_is_noticed_in_whichever_array_and_in_the_table_of_them(saved):
    file = saved / "index.arrays"
    async with opened(saved) as (store, _):
        mark = f"{await store.meta('mirror')} 1 {words.VERSION} {sys.byteorder}"
    with file.open("rb", 0) as opened_file:
        start, table = _table(opened_file)
    places = [0, 17, 40, start // 2]
    places += [start + first + size // 2 for *_, first, size, _ in table["arrays"].values() if size]
    assert len(places) > 30
    for place in places:
        flip(file, place)
        with pytest.raises(Unusable):
            read(file, mark)
        flip(file, place)
    assert read(file, mark)


def _cut(file):
    os.truncate(file, file.stat().st_size // 2)


def _lengthen(file):
    with file.open("ab") as more:
        more.write(b"\0" * 4096)


def _empty(file):
    file.write_bytes(b"")


def _link(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


@pytest.mark.parametrize("harm", [_cut, _lengthen, _empty, _link])
async def test_a_file_that_is_not_whole_is_not_used(saved, harm):
    harm(saved / "index.arrays")
    found, was_used = await from_the_file(saved)
    assert not was_used
    assert found == await from_the_store(saved)


async def test_a_file_of_another_store_is_not_used(saved, chunk):
    """Ids begin again there, and say something else."""
    (saved / "index.db").unlink()
    async with opened(saved) as (store, _):
        await put(store, chunk, range(300, 400))
    found, was_used = await from_the_file(saved)
    assert not was_used
    assert found == await from_the_store(saved)


async def test_a_store_that_was_set_back_does_not_take_what_it_has_lost_from_the_file(
    saved, chunk, tmp_path
):
    old = tmp_path / "old.db"
    shutil.copy(saved / "index.db", old)
    async with opened(saved) as (store, mirrors):
        await put(store, chunk, range(30_000, 31_500))
        await mirrors.ready(OWNER)
        assert await mirrors.save()
    shutil.copy(old, saved / "index.db")
    async with opened(saved) as (store, _):
        await put(store, chunk, range(300, 400))  # under ids that the file has, too
    found, was_used = await from_the_file(saved)
    assert not was_used
    assert found == await from_the_store(saved)


def holding(folder, word):
    """Files with a word, however they have it: as it is, or pressed together."""
    found = []
    for file in folder.rglob("*"):
        data = file.read_bytes()
        if word in data or any(word in text for text in pressed(data)):
            found.append(file.name)
    return found


def pressed(data):
    at = -1
    while (at := data.find(b"\x78\x01", at + 1)) >= 0:
        try:
            yield zlib.decompressobj().decompress(data[at:])
        except zlib.error:
            continue


async def test_a_forgotten_word_is_in_no_file_nor_comes_back_to_one(saved, chunk):
    path, word = "memory/0.md", b"rumpelstilz"
    async with opened(saved) as (store, mirrors):
        await mirrors.ready(OWNER)
        secret = [entry(chunk("her name is Rumpelstilz", path, line=n)) for n in range(1, 1300)]
        await mirrors.change(store.replace(path, "d", secret))
        await mirrors.ready(OWNER)
        assert await mirrors.save()
        assert "index.arrays" in holding(saved, word)
        assert len(holding(saved, b"Rumpelstilz")) > 1, "texts are seen, pressed as they are"
        await mirrors.change(store.replace(path, "d", [entry(chunk("nothing", path))]))
        assert "index.arrays" in holding(saved, word)
        await mirrors.erase(lambda: store.erase([]))
        for each in (word, b"Rumpelstilz"):
            assert not holding(saved, each)
        assert await mirrors.save()
        assert (saved / "index.arrays").exists()
        for each in (word, b"Rumpelstilz"):
            assert not holding(saved, each)
    assert (await from_the_file(saved))[1]


class Slow(SqliteChunks):
    """A store whose notes can be made to wait."""

    def __init__(self, db):
        super().__init__(db)
        self.is_noting, self.may_note = asyncio.Event(), asyncio.Event()

    async def set_meta(self, name, value):
        self.is_noting.set()
        await self.may_note.wait()
        await super().set_meta(name, value)


async def test_a_file_that_was_begun_before_an_erasure_does_not_appear_after_it(saved, chunk):
    (saved / "index.arrays").unlink()
    async with Database.open(saved / "index.db", INDEX, synchronous="NORMAL") as db:
        store = Slow(db)
        async with Mirrors.open(store, [MODEL], saved / "index.arrays") as mirrors:
            await mirrors.ready(OWNER)
            async with asyncio.TaskGroup() as tasks:
                saving = tasks.create_task(mirrors.save())
                await store.is_noting.wait()
                assert (saved / "index.arrays.new").exists()
                await mirrors.erase(lambda: store.erase([]))
                assert not list(saved.glob("index.arrays*"))
                store.may_note.set()
                await saving
            assert not list(saved.glob("index.arrays*"))


async def test_no_room_leaves_what_was_there_and_says_so(saved, chunk):
    async with opened(saved) as (store, mirrors):
        await mirrors.ready(OWNER)
        await put(store, chunk, range(50_000, 51_500))
        await mirrors.change(store.remove([]))
        await mirrors.ready(OWNER)
        (saved / "index.arrays.new").mkdir()
        assert not await mirrors.save()
        (saved / "index.arrays.new").rmdir()
    assert (await from_the_file(saved))[1]


_SAVE_UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_mirror_file import OWNER, opened

async def main():
    async with opened(Path(sys.argv[1])) as (_, mirrors):
        await mirrors.ready(OWNER)
        mirror = mirrors._places[OWNER].mirror
        print("ready", flush=True)
        while True:
            mirror.unsaved = 1 << 30
            await mirrors.save()

asyncio.run(main())
"""


@pytest.mark.parametrize("at", range(4))
def test_a_kill_while_it_is_written_loses_nothing(saved, at):
    """Wherever it hits: what is there then is whole and used, or is told to be of another index."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SAVE_UNTIL_KILLED, str(saved), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    new = saved / "index.arrays.new"
    seen = 0
    for _ in count():
        assert process.poll() is None  # one that ended by itself would be waited for without end
        there = new.exists()
        seen += there
        if there and seen > 50 * at:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    found, _ = asyncio.run(from_the_file(saved))
    assert found == asyncio.run(from_the_store(saved))
    assert not new.exists()


async def test_while_it_is_loaded_words_answer_and_the_state_says_so(saved, clock):
    async with Database.open(saved / "index.db", INDEX, synchronous="NORMAL") as db:
        embedders = patient([packaged_static()], clock)
        async with (
            LiveIndex.open(
                store := Held(db), clock, embedders, patience=0.01, file=saved / "index.arrays"
            ) as index,
            asyncio.TaskGroup() as tasks,
        ):
            running = tasks.create_task(index.run())
            await store.is_asked.wait()
            found = await index.search(SearchQuery("quince thing2", limit=3, waits=True), OWNER)
            assert found.hits
            assert found.reason == "warming"
            assert (await index.state()).reason == "warming"
            store.may_answer.set()
            while (await index.state()).reason == "warming":
                await asyncio.sleep(0)
            found = await index.search(SearchQuery("quince thing2", limit=3, waits=True), OWNER)
            assert found.reason != "warming"
            running.cancel()


class Held(SqliteChunks):
    """A store that tells which chunks it has when it is allowed to."""

    def __init__(self, db):
        super().__init__(db)
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def ids(self):
        self.is_asked.set()
        await self.may_answer.wait()
        return await super().ids()


async def test_little_is_not_loaded_before_somebody_searches(store, clock, chunk, tmp_path):
    await store.extend("memory/a.md", "d", [entry(chunk("tea"))])
    async with (
        LiveIndex.open(store, clock, file=tmp_path / "index.arrays") as index,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(index.run())
        for _ in range(50):
            await asyncio.sleep(0)
        assert (await index.state()).nbytes == 0
        running.cancel()
    assert not (tmp_path / "index.arrays").exists()


def test_arrays_come_back_as_they_were_and_changing_them_changes_no_file(tmp_path):
    import numpy as np

    file = tmp_path / "arrays"
    given = {
        "rows": np.arange(12, dtype=np.int16).reshape(4, 3),
        "none": np.zeros((0, 5), np.float32),
        "names": np.frombuffer(b"[]", np.uint8),
    }
    write(file, "mark", given)
    held = read(file, "mark")
    for name, array in given.items():
        np.testing.assert_array_equal(held[name], array)
        assert held[name].dtype == array.dtype
    held["rows"][0] = 77
    assert read(file, "mark")["rows"][0].tolist() == [0, 1, 2]
    with pytest.raises(Unusable):
        read(file, "another mark")
    assert strings(given["names"]) == []


async def test_a_file_with_chunks_on_former_lines_is_not_used(saved):
    path = "memory/500.md"
    async with opened(saved) as (store, mirrors):
        await mirrors.ready(OWNER)
        change = store.patch(path, "d", [LinePatch(501, 503, 0, ())])
        await mirrors.change(change, moved=path)
        level = await answers(mirrors)
    found, was_used = await from_the_file(saved)
    assert not was_used
    assert found == await from_the_store(saved) == level


async def test_a_file_from_before_lines_were_appended_is_used(saved, chunk):
    path = "memory/500.md"
    async with opened(saved) as (store, mirrors):
        await mirrors.ready(OWNER)
        (_, line, _) = max(await store.lines(path), key=lambda one: one[1])
        new = chunk("an axolotl was seen", path, line=line + 1)
        change = store.patch(path, "d", [LinePatch(line + 1, line + 1, 1, (entry(new),))])
        await mirrors.change(change, moved=path)
        level = await answers(mirrors)
    found, was_used = await from_the_file(saved)
    assert was_used
    assert found == await from_the_store(saved) == level


async def test_a_file_that_is_written_after_chunks_have_moved_is_used(saved):
    path = "memory/500.md"
    async with opened(saved) as (store, mirrors):
        await mirrors.ready(OWNER)
        await mirrors.change(store.patch(path, "d", [LinePatch(501, 503, 0, ())]), moved=path)
        (saved / "index.arrays").unlink()
        assert await mirrors.save()
    found, was_used = await from_the_file(saved)
    assert was_used
    assert found == await from_the_store(saved)


async def test_a_file_of_before_a_move_is_not_taken_for_one_of_after_it(saved):
    path = "memory/500.md"
    async with opened(saved) as (store, mirrors):
        await mirrors.ready(OWNER)
        (saved / "index.arrays").unlink()
        moves = await store.meta(MOVES)
        mirror = mirrors._places[OWNER].mirror
        await store.patch(path, "d", [LinePatch(501, 503, 0, ())])  # while the file is written
        assert await mirrors._saved.save(mirror, moves)
    assert not (await from_the_file(saved))[1]
