"""Transactions: together, alone when they fail, and never lost once acknowledged."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from agentd.core.errors import NotFound, StorageCorrupt, StorageError, StorageFull
from agentd.engine.durable import write_beside
from agentd.storage.migrations import STATE, Schema
from agentd.storage.sqlite import Database
from tests.waiting import until

TOY = Schema("toy", 77, ("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE) STRICT;",))

WRITER = """
import asyncio, sys
from pathlib import Path
from agentd.storage.migrations import Schema
from agentd.storage.sqlite import Database

async def write(db, n):
    i = 0
    while True:
        value = f"{sys.argv[2]}-{n}-{i}"
        await db.execute("INSERT INTO t (v) VALUES (?)", (value,))
        print(value, flush=True)
        i += 1

async def main():
    async with Database.open(Path(sys.argv[1]), Schema("toy", 77, (sys.argv[3],))) as db:
        async with asyncio.TaskGroup() as group:
            for n in range(4):
                group.create_task(write(db, n))

asyncio.run(main())
"""


@pytest.fixture
async def db(tmp_path):
    async with Database.open(tmp_path / "toy.db", TOY) as db:
        yield db


def insert(value):
    def fn(conn):
        conn.execute("INSERT INTO t (v) VALUES (?)", (value,))
        return value

    return fn


async def stored(db):
    return await db.read(lambda c: {row["v"] for row in c.execute("SELECT v FROM t")})


class Gate:
    """Holds the database's thread until it is opened, so that writes pile up."""

    def __init__(self):
        self._open = threading.Event()

    def wait(self, conn):
        assert self._open.wait(10)

    def open(self):
        self._open.set()


async def pile_up(db, *fns):
    """Start the writes while the thread is held; their results or errors, in order."""
    gate = Gate()
    outcomes = [None] * len(fns)

    async def run(n, fn):
        outcomes[n] = await outcome(db.write(fn))

    async with asyncio.TaskGroup() as group:
        group.create_task(db.read(gate.wait))
        for n, fn in enumerate(fns):
            group.create_task(run(n, fn))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.open()
    return outcomes


async def outcome(call):
    try:
        return await call
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return error


async def test_waiting_writes_share_a_commit(db):
    values = [f"v{n}" for n in range(16)]
    assert await pile_up(db, *map(insert, values)) == values
    assert db.commits == 1
    assert await stored(db) == set(values)


async def test_writes_that_are_made_together_share_a_commit_though_nothing_keeps_the_thread(db):
    for number in range(50):

        async def second(value=f"b{number}"):
            await db.write(insert(value))

        assert await write_beside(db.write(insert(f"a{number}")), second) == f"a{number}"
    assert db.commits == 50


async def test_a_write_is_done_though_the_database_is_closed_in_the_same_moment(tmp_path):
    async with Database.open(tmp_path / "s.db", TOY) as db:
        writing = asyncio.create_task(db.write(insert("a")))
        await asyncio.sleep(0)
    assert await writing == "a"


@pytest.mark.parametrize("act", ["write", "read", "prove"])
@pytest.mark.parametrize("moments", range(12))
async def test_what_comes_while_the_database_closes_is_done_or_told_so(tmp_path, moments, act):
    async def late():
        for _ in range(moments):
            await asyncio.sleep(0)
        match act:
            case "write":
                await db.write(insert("a"))
            case "read":
                await stored(db)
            case _:
                await db.check()

    async with Database.open(tmp_path / "s.db", TOY) as db:
        coming = asyncio.create_task(late())
    async with asyncio.timeout(10):
        (outcome,) = await asyncio.gather(coming, return_exceptions=True)
    assert outcome is None or isinstance(outcome, StorageError), outcome


async def test_a_write_that_raises_fails_alone(db):
    def refuse(conn):
        insert("half done")(conn)
        raise NotFound("no such thing")

    outcomes = await pile_up(db, insert("a"), refuse, insert("a"), insert("b"))
    assert outcomes[0] == "a"
    assert isinstance(outcomes[1], NotFound)
    assert isinstance(outcomes[2], StorageError)
    assert outcomes[3] == "b"
    assert await stored(db) == {"a", "b"}


async def test_a_copy_keeps_nobody_waiting_and_is_one_state(tmp_path, db):
    await db.write(lambda conn: [insert(f"{n} {'x' * 100_000}")(conn) for n in range(200)])
    copying = asyncio.create_task(db.copy(tmp_path / "copy.db"))
    await until((tmp_path / "copy.db").exists, "the copy has begun")
    written, between = 0, 0
    while not copying.done():
        await db.write(insert(f"later {written}"))
        written += 1
        assert f"later {written - 1}" in await stored(db)
        between += not copying.done()
    await copying
    assert between >= 2
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        held = [v for (v,) in copy.execute("SELECT v FROM t ORDER BY id")]
    assert len(held[0]) > 100_000
    assert held[200:] == [f"later {n}" for n in range(len(held) - 200)]
    assert between - 1 <= len(held) - 200 <= written


async def test_what_is_erased_waits_for_a_copy_and_a_write_that_fails_changes_none(tmp_path, db):
    await db.write(lambda conn: [insert(f"{n} {'x' * 100_000}")(conn) for n in range(100)])

    def fill_and_fail(conn):
        for n in range(50):
            conn.execute("UPDATE t SET v = ? WHERE id = ?", (f"wrong {'y' * 100_000} {n}", n + 1))
        raise NotFound("no such thing")

    copying = asyncio.create_task(db.copy(tmp_path / "copy.db"))
    await until((tmp_path / "copy.db").exists, "the copy has begun")
    erasing = asyncio.create_task(db.erase(lambda conn: conn.execute("DELETE FROM t WHERE id = 1")))
    with pytest.raises(NotFound):
        await db.write(fill_and_fail)
    await copying
    assert not erasing.done()
    await erasing
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        ((count, wrong),) = copy.execute("SELECT count(*), sum(v LIKE 'wrong%') FROM t")
    assert (count, wrong) == (100, 0)


async def test_a_look_sees_the_writes_that_wait_with_it(db):
    gate = Gate()
    async with asyncio.TaskGroup() as group:
        group.create_task(db.read(gate.wait))
        await asyncio.sleep(0)
        group.create_task(db.write(insert("a")))
        look = group.create_task(stored(db))
        await asyncio.sleep(0)
        gate.open()
    assert look.result() == {"a"}


async def test_a_write_is_stored_though_the_damage_that_a_look_finds_cannot_be_mended(tmp_path):
    def find_damage(conn):
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    derived = Schema("toy", 77, TOY.steps, derived=True)
    path = tmp_path / ("x" * 246)  # which leaves no room for the name under which it is put aside
    gate = Gate()
    async with Database.open(path, derived) as db:
        async with asyncio.TaskGroup() as group:
            group.create_task(db.read(gate.wait))
            await asyncio.sleep(0)
            write = group.create_task(db.write(insert("a")))
            looks = [group.create_task(outcome(db.read(find_damage))) for _ in range(2)]
            await asyncio.sleep(0)
            gate.open()
        assert write.result() == "a"
        assert [type(look.result()) for look in looks] == [StorageCorrupt] * 2
        (problem,) = [p for p in db.problems() if p.code == "storage"]
        assert "File name too long" in problem.text


async def test_a_write_is_stored_though_the_marker_of_a_deletion_cannot_be_removed(db):
    marker = db.path.with_name(f"{db.path.name}-unclean")
    await db.write(insert("a"))
    marker.mkdir()  # which nobody can remove as a file
    with pytest.raises(StorageError, match=marker.name):
        await db.erase(lambda conn: conn.execute("DELETE FROM t"))
    assert await db.write(insert("b")) == "b"
    (problem,) = db.problems()
    assert problem.code == "storage_not_cut"
    assert marker.name in problem.text
    marker.rmdir()
    assert await db.write(insert("c")) == "c"
    assert db.problems() == ()
    assert await stored(db) == {"b", "c"}


async def test_no_call_is_left_waiting_however_many_come_and_go(db):
    async def talk(who):
        for n in range(15):
            await db.write(insert(f"{who}-{n}"))
            assert f"{who}-{n}" in await stored(db)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for who in range(10):
            group.create_task(talk(who))
    assert db.commits <= 150


async def test_a_cancelled_waiter_does_not_stop_the_transaction(db):
    gate = Gate()
    async with asyncio.TaskGroup() as group:
        group.create_task(db.read(gate.wait))
        first = group.create_task(db.write(insert("cancelled")))
        second = group.create_task(db.write(insert("kept")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        gate.open()
    assert first.cancelled()
    assert second.result() == "kept"
    assert await stored(db) == {"cancelled", "kept"}


async def test_a_write_given_up_at_the_end_is_still_stored(tmp_path):
    async with Database.open(tmp_path / "t.db", TOY) as db:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await db.write(insert("late"))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(db.write(insert("later")))
            await asyncio.sleep(0)
            task.cancel()
    async with Database.open(tmp_path / "t.db", TOY) as db:
        assert await stored(db) >= {"later"}


async def test_state_is_synced_and_wal(tmp_path, state_db, index_db):
    async def pragma(db, name):
        return await db.read(lambda c: c.execute(f"PRAGMA {name}").fetchone()[0])

    assert await pragma(state_db, "synchronous") == 2
    assert await pragma(index_db, "synchronous") == 1
    for name, value in {"journal_mode": "wal", "foreign_keys": 1, "secure_delete": 1}.items():
        assert await pragma(state_db, name) == value
    assert await pragma(state_db, "busy_timeout") == 5000


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
async def test_files_are_private_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        async with Database.open(tmp_path / "new" / "state.db", STATE) as db:
            await db.execute("UPDATE heartbeat SET next_due = NULL", ())
            modes = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "new").iterdir()}
    finally:
        os.umask(before)
    names = ("state.db", "state.db-wal", "state.db-shm", "state.db-acknowledged", "rows.key")
    assert modes == dict.fromkeys(names, 0o600)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


async def test_everything_is_there_after_reopening(tmp_path):
    async with Database.open(tmp_path / "t.db", TOY) as db:
        await db.write(insert("a"))
    async with Database.open(tmp_path / "t.db", TOY) as db:
        assert await stored(db) == {"a"}
    with pytest.raises(StorageError):
        await db.write(insert("b"))
    with pytest.raises(StorageError):
        await stored(db)


async def test_the_proof_of_life_writes_nothing(db, tmp_path):
    await db.write(insert("a"))
    before = (tmp_path / "toy.db-wal").stat()
    await db.check()
    after = (tmp_path / "toy.db-wal").stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert (db.name, db.problems(), db.commits) == ("store", (), 1)


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small tmpfs is not permitted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


async def test_a_full_disk_refuses_and_recovers_by_itself(small_disk):
    ballast = small_disk / "ballast"
    async with Database.open(small_disk / "t.db", TOY) as db:
        await db.write(insert("before"))
        free = os.statvfs(small_disk)
        ballast.write_bytes(bytes((free.f_bavail - 4) * free.f_frsize))
        with pytest.raises(StorageFull) as caught:
            await db.write(insert("x" * 200_000))
        assert "space" in caught.value.cure
        assert [p.code for p in db.problems()] == ["storage_full"]
        assert await stored(db) == {"before"}
        outcomes = await pile_up(db, insert("y" * 200_000), insert("z" * 200_000))
        assert all(isinstance(o, StorageFull) for o in outcomes)
        ballast.unlink()
        assert await db.write(insert("after")) == "after"
        assert db.problems() == ()
    async with Database.open(small_disk / "t.db", TOY) as db:
        assert await stored(db) == {"before", "after"}
        check = await db.read(lambda c: c.execute("PRAGMA integrity_check").fetchone()[0])
        assert check == "ok"


async def test_a_large_write_on_a_full_disk_does_not_take_small_ones_with_it(small_disk):
    async with Database.open(small_disk / "t.db", TOY) as db:
        outcomes = await pile_up(db, insert("a"), insert("x" * 2_000_000), insert("b"))
        assert [outcomes[0], outcomes[2]] == ["a", "b"]
        assert isinstance(outcomes[1], StorageFull)
        assert await stored(db) == {"a", "b"}


async def test_after_a_failed_sync_nothing_is_accepted_until_a_restart(db, tmp_path):
    def lose_sync(conn):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    await db.write(insert("before"))
    with pytest.raises(StorageError):
        await db.write(lose_sync)
    for refused in (db.write(insert("after")), db.check()):
        with pytest.raises(StorageError) as caught:
            await refused
        assert "restart" in caught.value.cure
    assert [p.code for p in db.problems()] == ["storage_sync_failed"]
    assert await stored(db) == {"before"}


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    path, acknowledged = tmp_path / "t.db", set()
    for round_ in range(20):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(round_), TOY.steps[0]],
            stdout=subprocess.PIPE,
        ) as writer:
            lines = [writer.stdout.readline() for _ in range(1 + round_ * 5)]
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout.readlines()
        acknowledged |= {line.decode().strip() for line in lines if line.endswith(b"\n")}

    async def check():
        async with Database.open(path, TOY) as db:
            assert await stored(db) >= acknowledged

    asyncio.run(check())
    assert len(acknowledged) > 20


async def test_nobody_waits_in_vain_who_comes_while_copies_are_made(tmp_path):
    async with Database.open(tmp_path / "state.db", STATE) as db:
        await db.write(
            lambda conn: conn.execute("CREATE TABLE filler AS SELECT randomblob(1000000) AS bytes")
        )
        is_over, looks = False, 0

        async def look() -> None:
            nonlocal looks
            while not is_over:
                sum(range(50_000))  # so long that the thread comes in between, as with a busy loop
                found = await db.read(lambda conn: conn.execute("SELECT 1 AS one").fetchone())
                looks += found["one"]

        async def copies() -> None:
            nonlocal is_over
            for number in range(60):
                copy = tmp_path / f"copy{number}.db"
                await db.copy(copy)
                copy.unlink()
            is_over = True

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(copies())
            for _ in range(20):
                group.create_task(look())
        assert looks > 20, "each was answered more than once, while copies were made"
