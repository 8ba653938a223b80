"""No byte of what was deleted stays in the files, whatever happened on the way."""

import random
import sqlite3
from contextlib import closing

import pytest

from agentd.core.errors import Busy, StorageError
from agentd.core.search import OWNER, Chunk, Source
from agentd.memory.index.search.entries import entry
from agentd.storage.index import SqliteChunks
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database

_SIZES = (5, 50, 300, 900, 2500, 9000)


def left(folder, word):
    """How often the word stands in the files of a folder."""
    return sum(file.read_bytes().count(word.encode()) for file in folder.iterdir())


def fill(conn, seed):
    """Rows of three sessions whose pages have been rearranged many times."""
    chance = random.Random(seed)
    for key in range(1, 4):
        values = (key, f"chat:{key}", "a", "b")
        conn.execute(
            "INSERT INTO sessions (id, key, created_at, updated_at) VALUES (?,?,?,?)", values
        )
    for seq in range(600):
        key = chance.randrange(1, 4)
        body = f"CANARY{key} " + "x" * chance.choice(_SIZES)
        conn.execute(
            "INSERT INTO rows (session_id, seq, role, opens_turn, at, provider, tag, blocks)"
            " VALUES (?, ?, 'user', 0, '', '', '', ?)",
            (key, seq, body),
        )
    conn.execute("UPDATE rows SET blocks = substr(blocks, 1, 40) WHERE id % 3 = 0")


def drop(conn):
    conn.execute("DELETE FROM sessions WHERE id = 2")


def touch(conn):
    conn.execute("UPDATE sessions SET updated_at = 'c' WHERE id = 1")


@pytest.mark.parametrize("seed", range(3))
async def test_erased_rows_leave_nothing_in_the_files(state_db, seed):
    folder = state_db.path.parent
    await state_db.write(lambda conn: fill(conn, seed))
    assert left(folder, "CANARY2"), "the test could not fail"
    others = left(folder, "CANARY3")
    assert others
    await state_db.erase(drop)
    assert left(folder, "CANARY2") == 0
    assert left(folder, "CANARY3")
    assert not (folder / "state.db-unclean").exists()
    await state_db.check()


def crowd(conn, seed):
    """Many rows, a few of a session of its own, rearranged until copies of these lie between
    others.
    """
    chance = random.Random(seed)
    for key in range(1, 3):
        values = (key, f"chat:{key}", "a", "b")
        conn.execute(
            "INSERT INTO sessions (id, key, created_at, updated_at) VALUES (?,?,?,?)", values
        )
    for seq in range(8900):
        if seq % 1500 == 1499:  # pages are merged, and split again by what comes then
            conn.execute("DELETE FROM rows WHERE session_id = 1 AND id % 3 > 0")
        key = 2 if seq % 20 == 0 else 1
        body = f"CANARY{key} " + "x" * chance.choice(_SIZES[:5])
        conn.execute(
            "INSERT INTO rows (id, session_id, seq, role, opens_turn, at, provider, tag, blocks)"
            " VALUES (?, ?, ?, 'user', 0, '', '', '', ?)",
            (chance.randrange(1 << 40), key, seq, body),
        )


def statements(conn):
    """Every statement that the connection runs from now on."""
    seen = []
    conn.set_trace_callback(seen.append)
    return seen


def cut(conn):
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def is_sound(conn):
    return conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


@pytest.mark.parametrize("seed", [1, 2, 6])
async def test_a_few_rows_leave_nothing_although_the_file_is_not_written_anew(state_db, seed):
    folder = state_db.path.parent
    await state_db.read(lambda conn: conn.execute("PRAGMA cache_size = -64000").fetchall())
    await state_db.write(lambda conn: crowd(conn, seed))
    await state_db.write(drop)
    await state_db.read(cut)
    assert left(folder, "CANARY2"), "what SQLite's own erasing leaves: the test could not fail"
    rows = await state_db.read(lambda conn: conn.execute("SELECT id, blocks FROM rows").fetchall())
    kept, seen = left(folder, "CANARY1"), await state_db.read(statements)
    await state_db.erase(touch)
    assert left(folder, "CANARY2") == 0
    assert len(rows) <= left(folder, "CANARY1") <= kept
    assert not any("VACUUM" in one for one in seen)
    # Pages are not written from a memory of what they were.
    await state_db.write(lambda conn: conn.execute("UPDATE rows SET tag = 'another'"))
    await state_db.read(cut)
    assert left(folder, "CANARY2") == 0
    assert await state_db.read(is_sound)
    assert rows == await state_db.read(
        lambda conn: conn.execute("SELECT id, blocks FROM rows").fetchall()
    )


async def test_a_file_of_which_much_is_free_gives_the_room_back(state_db):
    await state_db.write(lambda conn: crowd(conn, 0))
    await state_db.read(cut)
    size = state_db.path.stat().st_size
    await state_db.erase(lambda conn: conn.execute("DELETE FROM sessions WHERE id = 1"))
    assert left(state_db.path.parent, "CANARY1") == 0
    assert state_db.path.stat().st_size < size / 2


async def test_what_a_crash_cut_short_is_done_at_the_next_start(tmp_path):
    folder = tmp_path / "state"
    path = folder / "state.db"
    async with Database.open(path, STATE) as db:
        await db.write(lambda conn: fill(conn, 1))
    # Deleted without care and killed: the bytes are still there, and so is the marker.
    conn = sqlite3.connect(path)
    conn.execute("PRAGMA secure_delete = OFF")
    conn.execute("DELETE FROM rows WHERE session_id = 2")
    conn.commit()
    conn.close()
    (folder / "state.db-unclean").touch()
    assert left(folder, "CANARY2")
    async with Database.open(path, STATE):
        assert left(folder, "CANARY2") == 0
    assert not (folder / "state.db-unclean").exists()


async def test_bytes_that_another_reader_holds_stay_owed_until_he_is_gone(state_db):
    folder = state_db.path.parent
    await state_db.write(lambda conn: fill(conn, 0))
    await state_db.read(lambda conn: conn.execute("PRAGMA busy_timeout = 0").fetchall())
    with closing(sqlite3.connect(state_db.path)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM rows").fetchone()
        with pytest.raises(StorageError, match="still in its files"):
            await state_db.erase(drop)
        assert left(folder, "CANARY2"), "the test could not fail"
        assert (folder / "state.db-unclean").exists()
        await state_db.write(touch)
        assert [problem.code for problem in state_db.problems()] == ["storage_not_cut"]
        assert (folder / "state.db-unclean").exists()
    await state_db.write(touch)
    assert left(folder, "CANARY2") == 0
    assert not (folder / "state.db-unclean").exists()
    assert state_db.problems() == ()


async def test_a_debt_is_not_paid_by_an_erasure_that_has_not_ended(state_db):
    folder = state_db.path.parent
    await state_db.write(lambda conn: fill(conn, 0))
    await state_db.read(lambda conn: conn.execute("PRAGMA busy_timeout = 0").fetchall())
    with closing(sqlite3.connect(state_db.path)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM rows").fetchone()
        with pytest.raises(StorageError):
            await state_db.erase(drop)
    async with state_db.erasing():
        await state_db.write(touch)
        assert (folder / "state.db-unclean").exists()
    assert not (folder / "state.db-unclean").exists()
    assert state_db.problems() == ()


@pytest.mark.torture
async def test_a_reader_keeps_nobody_from_starting(tmp_path):
    path = tmp_path / "state" / "state.db"
    async with Database.open(path, STATE) as db:
        await db.write(lambda conn: fill(conn, 1))
        (path.parent / "state.db-unclean").touch()
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM rows").fetchone()
        conn = sqlite3.connect(path)
        conn.execute("UPDATE sessions SET updated_at = 'c'")
        conn.commit()  # he sees what was before, so the log cannot be cut
        conn.close()
        async with Database.open(path, STATE):  # waits for him for five seconds
            assert (path.parent / "state.db-unclean").exists()
    async with Database.open(path, STATE):
        assert not (path.parent / "state.db-unclean").exists()


async def test_a_refusal_changes_nothing_and_leaves_no_marker(state_db):
    def refuse(conn):
        drop(conn)
        raise Busy("in use")

    await state_db.write(lambda conn: fill(conn, 0))
    with pytest.raises(Busy):
        await state_db.erase(refuse)
    assert left(state_db.path.parent, "CANARY2")
    assert [p.name for p in state_db.path.parent.iterdir() if "unclean" in p.name] == []


async def test_erased_chunks_leave_no_word_in_the_full_text_tables(index_db):
    index, folder = SqliteChunks(index_db), index_db.path.parent
    for number in range(40):
        text = f"kanariengelb{number} and the quick brown fox " * 20
        for path, word in (("sessions/a.jsonl", "zitronenfalter"), ("sessions/b.jsonl", "amsel")):
            chunk = Chunk(path, number, number, f"{word} {text}", Source.SESSIONS, scope="")
            await index.extend(path, str(number), [entry(chunk)])
    assert left(folder, "zitronenfalter")
    await index.erase(["sessions/a.jsonl"])
    assert left(folder, "zitronenfalter") == 0
    assert left(folder, "itronenfalter") == 0, "the tables store words without common beginnings"
    assert left(folder, "amsel")
    assert (await index.keyword(["zitronenfalter"], OWNER, limit=5)).hits == ()
    assert (await index.keyword(["amsel"], OWNER, limit=5)).hits


async def test_what_was_put_aside_goes_too(index_db):
    aside = index_db.path.with_name("index.db.corrupt-1")
    aside.write_bytes(b"zitronenfalter")
    await SqliteChunks(index_db).erase(["sessions/a.jsonl"])
    assert not aside.exists()
