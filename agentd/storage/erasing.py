"""Leaving no trace of what was deleted in a database's files.

SQLite's secure_delete blanks what a deletion frees, but not the copies that older rearrangements of
pages left behind in gaps (`residue` does), and the write-ahead log keeps former pages, so it is cut. A marker
beside the file, made before the deletion, tells the next start that this is still to be done.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

from agentd.errors import StorageError
from agentd.paths import sync_directory, sync_file
from agentd.storage.residue import NotPlainError, Shape, blank

_SUFFIX = "-unclean"
_SPARSE = 4  # a file is written anew where one of so many pages is free: others get the room back


class Connection(sqlite3.Connection):
    """One that holds a descriptor of its file: opened before SQLite's own and closed after it, since
    closing any of them drops the locks of all.
    """

    descriptor: int | None = None

    @classmethod
    def to(cls, path: Path, patience: float) -> Connection:
        """A connection to the file, whose statements wait so many seconds for another program. Raises
        sqlite3.Error.
        """
        descriptor = None
        with suppress(OSError):  # without it the file is written anew
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            conn = sqlite3.connect(path, isolation_level=None, timeout=patience, factory=cls)
        except BaseException:
            if descriptor is not None:
                os.close(descriptor)
            raise
        conn.descriptor = descriptor
        return conn

    def close(self) -> None:
        """Close it and the descriptor."""
        super().close()
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def mark_unclean(path: Path) -> bool:
    """Remember, durably, that deleted bytes may be left in the files of this database; False if that
    was known. Raises StorageError.
    """
    try:
        os.close(os.open(_marker(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        sync_directory(path.parent)
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(
            f"{_marker(path).name} cannot be made ({error.strerror})",
            cure="make room on the disk, then delete again",
        ) from error
    return True


def is_unclean(path: Path) -> bool:
    """Whether that is so."""
    return _marker(path).exists()


def unmark(path: Path) -> None:
    """Forget it: nothing was deleted, or nothing is left."""
    _marker(path).unlink(missing_ok=True)


def clear(conn: sqlite3.Connection, path: Path) -> None:
    """Leave none of it in the file and cut the log: blank what nothing stored uses, in time for one reading of
    the file, or write all that is left into fresh pages. No transaction may be open. Raises sqlite3.Error, and
    StorageError, while another program reads, when the marker stays.
    """
    _cut(conn, path)
    try:
        is_blank = _blanked(conn, path)
    except (NotPlainError, OSError):
        is_blank = False
    if not is_blank:
        conn.execute("VACUUM")
        _cut(conn, path)
    unmark(path)


def drop_asides(path: Path) -> None:
    """Delete damaged files that were put aside for this one: they hold what it held. What is no file
    was never ours, and stays.
    """
    for aside in path.parent.glob(f"{path.name}.corrupt-*"):
        if stat.S_ISREG(aside.lstat().st_mode):
            aside.unlink()


def _cut(conn: sqlite3.Connection, path: Path) -> None:
    is_busy, *_ = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:  # SQLite does not raise then, and the file may still have all of its former pages
        raise _read_by_others(path)
    # SQLite does not sync that cut: when the power goes the log could come back, with all former pages. Its
    # locks are on other files, so this one may be closed.
    try:
        sync_file(_log(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(
            f"{_log(path).name} cannot be synced ({error.strerror}): what was deleted may come back in it",
            cure="look after the disk; agentd tries again with the next write",
        ) from error


def _blanked(conn: sqlite3.Connection, path: Path) -> bool:
    """Whether the file could be blanked, and is worth it. Raises NotPlainError, OSError, StorageError."""
    if not isinstance(conn, Connection) or conn.descriptor is None:
        return False
    # Nobody else writes now, so nobody moves pages from the log into the file.
    conn.execute("BEGIN IMMEDIATE")
    try:
        if _log_of(path):
            raise _read_by_others(path)
        shape = Shape.of(conn.descriptor)
        if shape.free * _SPARSE > shape.count:
            return False
        blank(conn.descriptor, shape)
    finally:
        conn.execute("ROLLBACK")
    conn.execute("PRAGMA shrink_memory")  # pages as they were: they are to be read again
    return True


def _log_of(path: Path) -> int:
    """How many bytes are in the log."""
    try:
        return _log(path).stat().st_size
    except FileNotFoundError:
        return 0


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _read_by_others(path: Path) -> StorageError:
    return StorageError(
        f"another program reads {path.name}: what was deleted is still in its files",
        cure="close what else has the database open; agentd does the rest by itself",
    )


def _marker(path: Path) -> Path:
    return path.with_name(path.name + _SUFFIX)
