"""Makes backups of the state by itself: daily, and before the database is migrated.

Such a backup contains only the database and its keys. Files, above all the workspace, are not
copied every day. `agentd restore` accepts these backups like any other.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import structlog

from agentd.app import backup
from agentd.core.errors import AgentdError, StorageCorrupt, StorageError
from agentd.core.health import Problem
from agentd.core.offloading import to_the_end
from agentd.core.paths import DaemonPaths, ensure_private_dir
from agentd.core.ports import Clock
from agentd.engine.workers import DailyWorker
from agentd.storage.files import read_only
from agentd.storage.migrations import STATE, check
from agentd.storage.rescue import unsound_mark
from agentd.storage.sqlite import Database
from agentd.storage.sqlite_errors import translate

log = structlog.get_logger()

FOLDER = "backups"  # in the state directory
_PATTERN = "state-*.tar.gz"
_STAMP = "%Y%m%dT%H%M%SZ"
_DUE = timedelta(hours=23)  # after the last backup; less than a day, so that no day is skipped


class AutoBackups:
    """Makes the backups of one daemon and keeps the newest `keep`. With `keep` 0 no backup is made;
    the daily copy of the database is only read and checked.
    """

    def __init__(
        self, places: DaemonPaths, clock: Clock, keep: int, free: backup.Free = backup.free_at
    ) -> None:
        self._free_at = free
        self._places = places
        self._clock = clock
        self._keep = keep
        self._folder = places.state_dir / FOLDER
        self._daily: DailyWorker | None = None
        self._damage: Problem | None = None

    def newest(self) -> Path | None:
        """Return the newest backup; None if there is none."""
        found = self._in_order()
        return found[-1] if found else None

    def _in_order(self) -> list[Path]:
        """Return all backups, the newest last. Backups with a time stamp in the future, which a
        wrong clock gave them, come first: the others are newer, since they were made after the
        clock was corrected.
        """
        now = self._clock.now()
        files = self._folder.glob(_PATTERN)
        return sorted(files, key=lambda file: (_backup_time(file) <= now, file.name))

    def tidy(self) -> None:
        """Remove what killed backups have left over. No backup may be running. Blocks."""
        for path in backup.leftovers(self._places.state_dir, self._folder):
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            except OSError as error:
                log.warning("backup_left_behind", file=path.name, reason=error.strerror)

    def before_migration(self) -> None:
        """Back up the database if opening it would migrate it, unless `keep` is 0. No program may
        have it open. Blocks. Raises StorageError; then nothing has changed.
        """
        database = self._places.database
        if not self._keep or not database.is_file() or not database.stat().st_size:
            return
        try:
            with closing(read_only(database)) as conn:
                if not 0 < (version := check(conn, STATE)) < len(STATE.steps):
                    return
                self._copy_and_write(conn, f"version-{version}")
        except sqlite3.Error as error:
            raise translate(error, database) from error
        except OSError as error:
            raise StorageError(
                (
                    f"no backup could be made before {database.name} gets its new "
                    f"shape ({error.strerror})"
                ),
                cure=f"make room on the disk of {self._folder}, or set [storage] backups = 0",
            ) from error

    async def run(self, db: Database, *, is_checked: bool = True) -> None:
        """Make a backup daily until cancelled. With `is_checked` False the database, which was not
        read as a whole when it was opened, is read at once.
        """
        self._daily = DailyWorker("backup", lambda: self.make(db), self._clock)
        if not is_checked:
            await self._check(db)
        await self._daily.run()

    async def make(self, db: Database) -> None:
        """Make today's backup unless there is one, from a copy that is read and checked as a whole
        in a thread. Raises StorageCorrupt for a damaged database, StorageFull if the copy would
        take the room that messages need, AgentdError if no backup can be written.
        """
        newest = self.newest()
        if newest is not None and timedelta() <= self._clock.now() - _backup_time(newest) < _DUE:
            return
        with backup.place_for_copy(self._places, self._folder, self._free_at) as copy:
            await db.copy(copy)
            await to_the_end(partial(self._write, copy, "daily"))

    def problems(self) -> tuple[Problem, ...]:
        """Return why the last backup could not be made, and the damage that reading the database
        has found.
        """
        told = self._daily.problems() if self._daily else ()
        return (*told, *((self._damage,) if self._damage else ()))

    async def _check(self, db: Database) -> None:
        try:
            with backup.place_for_copy(self._places, self._folder, self._free_at) as copy:
                await db.copy(copy)
                await to_the_end(partial(self._read, copy))
        except (AgentdError, OSError) as error:
            log.warning("state_not_read", error=str(error))

    def _read(self, copy: Path) -> None:
        """Read and check a whole copy. Raises StorageCorrupt, after leaving the mark that has the
        next start salvage the database.
        """
        try:
            backup.check_database(copy)
        except StorageCorrupt as error:
            unsound_mark(self._places.database).touch(mode=0o600)
            cure = "`agentd restart` salvages what can be read of it"
            self._damage = Problem("state_damaged", f"{error.message}", cure)
            raise
        self._damage = None

    def _copy_and_write(self, conn: sqlite3.Connection, why: str) -> None:
        """Back up a database that nobody writes to meanwhile, so that the copy may fill the disk.
        Raises OSError, sqlite3.Error, AgentdError.
        """
        name = self._places.database.name
        with tempfile.TemporaryDirectory(prefix=backup.COPY, dir=self._places.state_dir) as folder:
            with closing(sqlite3.connect(Path(folder, name))) as target:
                conn.backup(target)
            self._write(Path(folder, name), why)

    def _write(self, copy: Path, why: str) -> dict[str, Any] | None:
        self._read(copy)
        if not self._keep:
            return None
        places, now = self._places, self._clock.now()
        contents = backup.ArchiveContents(
            copy,
            places.config_file,
            places.workspace,
            places.versions,
            places.images,
            places.facts_key,
            places.rows_key,
            places.mcp_pins,
            state_alone=True,
        )
        file = self._free(f"state-{now:{_STAMP}}-{why}")
        told = backup.write(contents, file, now)
        for old in self._in_order()[: -self._keep]:
            old.unlink()
        log.info("state_backed_up", file=file.name)
        return told

    def _free(self, name: str) -> Path:
        """Return a path that does not exist yet. A start that was killed after its backup may be
        repeated in the same second.
        """
        folder = ensure_private_dir(self._folder)
        names = (f"{name}{f'-{n}' if n > 1 else ''}.tar.gz" for n in count(1))
        return next(folder / one for one in names if not (folder / one).exists())


def _backup_time(file: Path) -> datetime:
    try:
        return datetime.strptime(f"{file.name.split('-')[1]}+0000", f"{_STAMP}%z")
    except ValueError:  # a renamed file
        return datetime.fromtimestamp(0).astimezone()
