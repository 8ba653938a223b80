"""A database file that others delete, exchange or damage under an open connection."""

from __future__ import annotations

import os
import sqlite3
from datetime import date

import pytest

from agentd.core.errors import StorageError
from agentd.core.search import OWNER, Chunk, Source
from agentd.memory.index.search.entries import entry
from agentd.storage.files import LARGE
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.sqlite import Database

NOTE = "memory/2026-11-21.md"


def entries(count, word="tea"):
    day = date(2026, 11, 21)
    return [
        entry(Chunk(NOTE, n, n, f"{word} number {n} " * 20, Source.NOTES, "", day))
        for n in range(1, count + 1)
    ]


async def fill(store, count=400):
    await store.replace(NOTE, "d", entries(count))
    return await store.load(0, count + 1, OWNER)


def codes(db):
    return [problem.code for problem in db.problems()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index.db"


@pytest.mark.parametrize("what", ["the file", "all files", "moved", "exchanged"])
async def test_a_deleted_index_is_written_again_with_all_it_held(path, what):
    async with Database.open(path, INDEX) as db:
        store = SqliteChunks(db)
        held = await fill(store)
        if what == "moved":
            path.rename(path.with_name("elsewhere"))
        elif what == "exchanged":
            path.with_name("other").write_bytes(b"somebody else's")
            path.with_name("other").replace(path)
        else:
            for suffix in ("", "-wal", "-shm") if what == "all files" else ("",):
                path.with_name(path.name + suffix).unlink()
        assert codes(db) == ["index_lost"]
        await store.extend("late.md", "d", entries(1, "late"))
        await store.verify()
        assert codes(db) == ["index_restored"]
        assert (path.stat().st_mode & 0o777, store.epoch) == (0o600, 0)
        await store.extend("later.md", "d", entries(1, "later"))
    async with Database.open(path, INDEX) as db:
        assert codes(db) == []
        found = await SqliteChunks(db).load(0, 1000, OWNER)
        assert found[: len(held)] == held
        assert set(await SqliteChunks(db).digests(Source.NOTES)) == {NOTE, "late.md", "later.md"}
    if what == "exchanged":
        assert path.with_name("index.db.corrupt-1").read_bytes() == b"somebody else's"


@pytest.mark.parametrize("damage", ["overwritten", "zeros", "truncated", "empty", "a page"])
async def test_damage_in_place_is_noticed_at_the_next_look(path, damage):
    async with Database.open(path, INDEX) as db:
        store = SqliteChunks(db)
        await fill(store)
        await db.read(lambda conn: conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        await store.verify()
        assert (store.epoch, codes(db)) == (0, [])
        size = path.stat().st_size
        with path.open("r+b") as file:
            if damage in {"truncated", "empty"}:
                file.truncate(size // 2 // 4096 * 4096 if damage == "truncated" else 0)
            else:
                file.seek(0 if damage == "overwritten" else 4096 * 7)
                file.write(bytes(4096 if damage == "a page" else size - 4096 * 7))
        os.utime(path)
        await store.verify()
        assert (store.epoch, codes(db)) == (1, ["index_rebuilt"])
        assert await store.ids() == []
        assert len(await fill(store)) == 400
    assert path.with_name("index.db.corrupt-1").exists()
    async with Database.open(path, INDEX) as db:
        assert len(await SqliteChunks(db).ids()) == 400


async def test_a_large_file_is_opened_unread_and_its_damage_noticed_at_the_first_look(path):
    async with Database.open(path, INDEX) as db:
        store = SqliteChunks(db)
        await fill(store)
        await store.set_meta("large", "x" * LARGE)
        await store.verify()
        assert (store.epoch, codes(db)) == (0, [])
    with path.open("r+b") as file:
        file.seek(LARGE - 4096 * 9)
        file.write(bytes(4096))
    async with Database.open(path, INDEX) as db:
        store = SqliteChunks(db)
        assert codes(db) == [], "not read yet"
        # What it writes itself hides nothing.
        await store.extend("late.md", "d", entries(1, "late"))
        await store.verify()
        assert (store.epoch, codes(db)) == (1, ["index_rebuilt"])


async def test_what_agentd_writes_itself_is_no_damage(path):
    async with Database.open(path, INDEX) as db:
        store = SqliteChunks(db)
        for _ in range(3):
            await fill(store, 900)
            await store.verify()
            await store.erase([NOTE])
            await store.verify()
        assert (store.epoch, codes(db)) == (0, [])


async def test_a_disk_without_room_leaves_the_deleted_index_as_it_is(path):
    async with Database.open(path, INDEX) as db:
        store = SqliteChunks(db)
        held = await fill(store, 5)
        path.unlink()
        path.with_name("index.db.new").mkdir()
        with pytest.raises(Exception, match="cannot be written again") as caught:
            await store.verify()
        assert caught.value.cure
        assert await store.load(0, 10, OWNER) == held
        path.with_name("index.db.new").rmdir()
        await store.verify()
        assert codes(db) == ["index_restored"]


@pytest.mark.parametrize("exchanged", [False, True])
async def test_a_deleted_state_database_is_told_and_can_still_be_copied(tmp_path, exchanged):
    path = tmp_path / "state.db"
    async with Database.open(path, STATE) as db:
        assert codes(db) == []
        path.unlink()
        if exchanged:
            path.write_bytes(b"another")
        (problem,) = db.problems()
        assert (problem.code, "agentd backup" in problem.cure) == ("storage_lost", True)
        await db.verify()
        assert codes(db) == ["storage_lost"]
        await db.copy(tmp_path / "copy.db")
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("PRAGMA quick_check").fetchone() == ("ok",)
    copy.close()


async def test_a_copy_whose_folder_is_gone_is_no_problem_of_the_database(tmp_path):
    async with Database.open(tmp_path / "state.db", STATE) as db:
        with pytest.raises(StorageError, match=r"could not be copied to .*copy\.db") as caught:
            await db.copy(tmp_path / "gone" / "copy.db")
        assert "all is stored as before" in caught.value.cure
        assert codes(db) == []
