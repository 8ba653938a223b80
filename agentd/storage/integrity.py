"""Whether others have deleted, exchanged or damaged a database file that is open, and its return."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from agentd.core.errors import StorageCorrupt
from agentd.core.health import Problem
from agentd.storage.files import put_aside
from agentd.storage.migrations import Schema
from agentd.storage.soundness import LARGE

SELDOM = 20  # looks between two readings of a larger file, while we write it ourselves


@dataclass(frozen=True, slots=True)
class _Look:
    """What a file looked like, and how much we had written by then."""

    inode: tuple[int, int]
    size: int
    mtime_ns: int
    commits: int


class IntegrityWatch:
    """Looks at an open file without opening it: closing any descriptor of it would drop the locks
    that SQLite holds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: _Look | None = None
        self._looks = 0
        self._written = False
        self._is_unread = False

    def begin(self, commits: int) -> None:
        """The file was opened, and found whole, unless it is large: the next look is to read it."""
        self._last = self._look(commits)
        self._looks, self._written = 0, False
        self._is_unread = self._last is not None and self._last.size >= LARGE

    def is_gone(self) -> bool:
        """Whether another file stands at its place, or none."""
        now = self._look(0)
        return self._last is not None and (now is None or now.inode != self._last.inode)

    def is_suspect(self, commits: int) -> bool:
        """Whether the file is to be read, as it changed. A large one that we write ourselves, as
        `commits` tells, and that grows, has to wait.
        """
        last, now = self._last, self._look(commits)
        if last is None or now is None:
            return False
        self._last = now
        self._looks += 1
        changed = (now.size, now.mtime_ns) != (last.size, last.mtime_ns)
        ours = now.size >= max(last.size, LARGE) and now.commits != last.commits
        if changed and ours and not self._is_unread and self._looks % SELDOM:
            self._written = True
            return False
        due = changed or self._is_unread or (self._written and self._looks % SELDOM == 0)
        if due:
            self._written = self._is_unread = False
        return due

    def _look(self, commits: int) -> _Look | None:
        try:
            seen = self._path.stat()
        except OSError:
            return None
        return _Look((seen.st_dev, seen.st_ino), seen.st_size, seen.st_mtime_ns, commits)


def lost_file(path: Path, *, derived: bool) -> Problem:
    """What to tell while a database's file is gone."""
    text = f"{path.name} was deleted or exchanged while agentd runs"
    if derived:
        return Problem("index_lost", text, "nothing is lost, it is written again within a minute")
    return Problem(
        "storage_lost",
        f"{text}; what it held is lost when agentd stops",
        "`agentd backup` now, while it runs; then stop agentd and restore that backup",
    )


def copied(conn: sqlite3.Connection, path: Path) -> Path:
    """A new file beside `path` with all that the connection sees, whether its own file has a name or
    not. Raises sqlite3.Error, OSError.
    """
    copy = path.with_name(f"{path.name}.new")
    copy.unlink(missing_ok=True)
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    target = sqlite3.connect(copy)
    try:
        conn.backup(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    finally:
        target.close()
    return copy


def put_back(copy: Path, path: Path, schema: Schema) -> Problem:
    """Move a copy to the place of the database, which nobody has open, and say so."""
    cure = "nothing is lost"
    if os.path.lexists(path):
        aside = put_aside(path, schema, StorageCorrupt("it took the place of another"))
        cure = f"{cure}; {aside.text}"
    for suffix in ("-wal", "-shm"):  # of the file that went: they would be taken for the copy's
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    copy.rename(path)
    text = f"{path.name} was deleted or exchanged while agentd ran, and was written again"
    return Problem("index_restored", text, cure)
