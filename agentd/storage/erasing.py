"""Leaving no trace of what was deleted in a database's files.

SQLite's secure_delete blanks what a deletion frees, but not the copies that older rearrangements of
pages left behind in gaps, and the write-ahead log keeps former pages. Only writing everything that is
left into fresh pages removes all of it. A marker beside the file, made before the deletion, tells the
next start that this is still to be done.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from agentd.errors import StorageError
from agentd.paths import sync_directory

_SUFFIX = "-unclean"


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


def write_anew(conn: sqlite3.Connection, path: Path) -> None:
    """Write what is left into fresh pages and cut the log. No transaction may be open. Raises what
    `cut_log` does.
    """
    conn.execute("VACUUM")
    cut_log(conn, path)


def cut_log(conn: sqlite3.Connection, path: Path) -> None:
    """The end of that alone. Raises StorageError, and the marker stays, while another program reads."""
    is_busy, *_ = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:  # SQLite does not raise then, and the file may still have all of its former pages
        raise StorageError(
            f"another program reads {path.name}: what was deleted is still in its files",
            cure="close what else has the database open; agentd does the rest by itself",
        )
    unmark(path)


def drop_asides(path: Path) -> None:
    """Delete damaged files that were put aside for this one: they hold what it held. What is no file
    was never ours, and stays.
    """
    for aside in path.parent.glob(f"{path.name}.corrupt-*"):
        if stat.S_ISREG(aside.lstat().st_mode):
            aside.unlink()


def _marker(path: Path) -> Path:
    return path.with_name(path.name + _SUFFIX)
