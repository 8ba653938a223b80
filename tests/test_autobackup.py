"""Backups that agentd makes by itself: daily, and before its database gets another shape."""

from __future__ import annotations

import asyncio
import sqlite3
import tarfile
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from agentd.app import backup
from agentd.app.autobackup import AutoBackups
from agentd.app.restore import restore
from agentd.core.errors import ConfigError, StorageCorrupt, StorageFull
from agentd.core.paths import daemon_places
from agentd.storage.damages import Damages
from agentd.storage.migrations import STATE
from agentd.storage.proving import RowCheck
from agentd.storage.rescue import make_sound
from agentd.storage.session_store import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.testing import FakeClock
from tests.storage.test_released_schemas import made


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def places(tmp_path):
    found = daemon_places({"AGENTD_HOME": str(tmp_path)})
    found.state_dir.mkdir()
    found.workspace.mkdir()
    (found.workspace / "note.md").write_text("mine\n")
    found.config_file.write_text("[storage]\nbackups = 3\n")
    return found


def files(places):
    return sorted(path.name for path in (places.state_dir / "backups").glob("*"))


def refuse(settings):
    raise ConfigError(f"nobody is asked: {settings}")


async def test_one_is_made_a_day_and_the_newest_are_kept(places, clock):
    backups = AutoBackups(places, clock, 3)
    async with Database.open(places.database, STATE) as db:
        sessions = SqliteSessions(db, clock)
        for day in range(5):
            await sessions.notice("main", f"day {day}", "")
            await backups.make(db)
            await backups.make(db)  # a restart on the same day
            assert len(files(places)) == min(day + 1, 3)
            await clock.advance(timedelta(days=1).total_seconds())
    newest = backups.newest()
    assert newest.name == files(places)[-1]
    assert newest.stat().st_mode & 0o777 == 0o600
    with tarfile.open(newest) as archive:
        assert archive.getnames() == ["state/state.db", "state/rows.key", "manifest.json"]
    assert not list(places.state_dir.glob(".backup-*"))


@pytest.mark.parametrize("keep", [1, 2])
async def test_one_of_a_clock_that_was_ahead_keeps_no_other_from_being_made(places, clock, keep):
    backups = AutoBackups(places, clock, keep)
    year = timedelta(days=365)
    async with Database.open(places.database, STATE) as db:
        clock.jump(year)
        await backups.make(db)
        (ahead,) = files(places)
        clock.jump(-year)
        for _ in range(keep):
            await backups.make(db)
            await backups.make(db)  # a restart on the same day
            assert backups.newest().name != ahead
            clock.jump(timedelta(days=1))
    assert len(files(places)) == keep
    assert ahead not in files(places)


async def test_a_lost_state_comes_back_from_it_and_all_else_stays_where_it_is(places, clock):
    backups = AutoBackups(places, clock, 3)
    async with Database.open(places.database, STATE) as db:
        await SqliteSessions(db, clock).notice("main", "kept", "")
        await backups.make(db)
        await SqliteSessions(db, clock).notice("main", "later", "")
    places.database.unlink()
    (places.workspace / "note.md").write_text("newer\n")
    told = restore(backups.newest(), places, {}, clock.now(), force=True, agree=refuse)
    assert [name for name in told["aside"] if "workspace" in name or "config" in name] == []
    assert (places.workspace / "note.md").read_text() == "newer\n"
    make_sound(places.database, STATE, clock.now(), used=lambda: True)
    assert Damages(places.database).all() == ()
    async with Database.open(places.database, STATE) as db:
        assert [row.text for row in await SqliteSessions(db, clock).rows("main")] == ["kept"]
        assert await RowCheck(db, clock).look() == 0
        assert db.problems() == ()


async def test_what_is_there_is_backed_up_before_its_shape_changes(places, clock):
    made(places.database, 7)
    backups = AutoBackups(places, clock, 3)
    backups.before_migration()
    (name,) = files(places)
    assert name.endswith("-version-7.tar.gz")
    manifest = backup.verify(backups.newest())
    assert (manifest["holds"], "state/state.db" in manifest["files"]) == ("state", True)
    async with Database.open(places.database, STATE):
        pass
    await clock.advance(5)
    backups.before_migration()
    assert files(places) == [name]
    restore(backups.newest(), places, {}, clock.now(), force=True, agree=refuse)
    with closing(sqlite3.connect(places.database)) as conn:
        assert conn.execute("PRAGMA user_version").fetchone() == (7,)


async def test_a_start_that_was_cut_after_its_backup_makes_another_in_the_same_second(
    places, clock
):
    made(places.database, 7)
    for _ in range(3):
        AutoBackups(places, clock, 7).before_migration()
    names = files(places)
    assert len(names) == 3
    for name in names:
        backup.verify(places.state_dir / "backups" / name)


async def test_the_daily_copy_is_checked_as_a_whole_even_where_no_backup_is_kept(places, clock):
    for keep in (3, 0):
        backups = AutoBackups(places, clock, keep)
        async with Database.open(places.database, STATE) as db:
            await SqliteSessions(db, clock).create(f"chat:{keep}")
        damage_an_index(places.database, f"chat:{keep}")
        async with Database.open(places.database, STATE) as db:
            with pytest.raises(StorageCorrupt, match="damaged"):
                await backups.make(db)
            assert [problem.code for problem in backups.problems()] == ["state_damaged"]
        assert files(places) == []
        # So short a look sees nothing; but it was found damaged, and is read to its end.
        make_sound(places.database, STATE, clock.now(), used=lambda: True, seconds=0)
        assert len(Damages(places.database).all()) == (1 if keep else 2)


async def test_a_database_that_was_not_read_to_its_end_is_read_once_it_is_open(places, clock):
    backups = AutoBackups(places, clock, 3)
    async with Database.open(places.database, STATE) as db:
        await SqliteSessions(db, clock).create("chat:a")
    damage_an_index(places.database, "chat:a")
    async with Database.open(places.database, STATE) as db, asyncio.TaskGroup() as group:
        task = group.create_task(backups.run(db, is_checked=False))
        await until(backups.problems)
        assert [problem.code for problem in backups.problems()] == ["state_damaged"]
        task.cancel()


def damage_an_index(path, key):
    with closing(sqlite3.connect(path)) as conn:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_sessions_1'"
        (root,) = conn.execute(query).fetchone()
    data = bytearray(path.read_bytes())
    data[data.index(key.encode(), 4096 * (root - 1)) + 3] ^= 1
    path.write_bytes(data)


async def test_one_that_cannot_be_made_is_a_problem_until_the_next_one(places, clock):
    backups = AutoBackups(places, clock, 3)
    (places.state_dir / "backups").write_text("in the way\n")
    async with Database.open(places.database, STATE) as db, asyncio.TaskGroup() as group:
        task = group.create_task(backups.run(db))
        await until(lambda: clock.sleeping)
        await clock.advance(600)
        await until(backups.problems)
        assert [problem.code for problem in backups.problems()] == ["backup_failed"]
        (places.state_dir / "backups").unlink()
        await until(lambda: clock.sleeping)
        await clock.advance(3600)
        await until(lambda: not backups.problems())
        task.cancel()
    assert len(files(places)) == 1


async def test_none_is_made_that_would_take_the_room_of_messages(places, clock):
    free = [20_000_000]
    backups = AutoBackups(places, clock, 3, free=lambda _: free[0])
    async with Database.open(places.database, STATE) as db:
        await backups.make(db)
        await clock.advance(timedelta(days=1).total_seconds())
        free[0] = 16_000_000
        with pytest.raises(StorageFull, match="16 are free") as caught:
            await backups.make(db)
        assert "stored as before" in caught.value.cure
        assert not db.problems()
    assert len(files(places)) == 1
    assert not list(places.state_dir.glob(f"{backup.COPY}*"))


async def until(holds):
    """Give the other threads their turn."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.001)


async def test_a_start_removes_what_killed_backups_left(places, clock):
    backups = AutoBackups(places, clock, 3)
    async with Database.open(places.database, STATE) as db:
        await backups.make(db)
    kept = files(places)
    copy = places.state_dir / ".backup-0123"
    copy.mkdir()
    (copy / "state.db").write_bytes(b"all that was said")
    (places.state_dir / "backups" / ".agentd-state-1.tar.gz.tmp").write_bytes(b"half of it")
    backups.tidy()
    assert not copy.exists()
    assert files(places) == kept


class Slow(AutoBackups):
    """Backups whose writing begins and goes on when the test says so."""

    begun, proceed = threading.Event(), threading.Event()
    had_its_copy = False

    def _write(self, copy: Path, kind: str) -> None:
        self.begun.set()
        self.proceed.wait(10)
        self.had_its_copy = copy.exists()
        super()._write(copy, kind)


async def test_one_that_is_cancelled_keeps_its_copy_until_the_thread_has_ended(places, clock):
    async with Database.open(places.database, STATE) as db:
        backups = Slow(places, clock, 3)
        making = asyncio.create_task(backups.make(db))
        assert await asyncio.to_thread(backups.begun.wait, 10)
        making.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        backups.proceed.set()
        with pytest.raises(asyncio.CancelledError):
            await making
    assert backups.had_its_copy
    assert not list(places.state_dir.rglob(f"{backup.COPY}*"))


async def test_a_copy_that_is_cancelled_is_written_to_its_end(places, clock, tmp_path):
    async with Database.open(places.database, STATE) as db:
        await SqliteSessions(db, clock).notice("main", "x" * 5_000_000, "")
        copying = asyncio.create_task(db.copy(tmp_path / "copy.db"))
        await asyncio.sleep(0)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        with closing(sqlite3.connect(tmp_path / "copy.db", timeout=0)) as copy:
            assert copy.execute("SELECT count(*) FROM rows").fetchone() == (1,)
