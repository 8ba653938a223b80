"""Database files: made private, opened, looked at for damage, watched while they are open, and put aside.
Blocking.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

from agentd.core.errors import StorageCorrupt, StorageError
from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir, sync_directory
from agentd.storage.erasing import SqliteConnection, clear, is_unclean
from agentd.storage.migrations import Schema, check, check_shape, migrate
from agentd.storage.proofs import Guard
from agentd.storage.sqlite_errors import corrupt, no_room, translate

LARGE = 16 * 1024 * 1024  # bytes of a derived file that is not read before it is used: .02 s
SECONDS = 0.5  # that each of the two readings at a start may take


@dataclass(frozen=True, slots=True)
class SoundnessLook:
    """What a look has found: why the file is damaged, "" if no damage was seen, and whether all of it
    was read.
    """

    damage: str = ""
    is_complete: bool = True


def look(path: Path, schema: Schema, seconds: float = SECONDS) -> SoundnessLook:
    """Read a database that nobody has open, and write nothing. All of it and its indices if that can be
    done in `seconds`, else in as many once more its pages alone. Raises StorageError for a file that
    cannot be read for another reason than damage, and for one that is not ours or of a newer agentd.
    """
    try:
        with closing(read_only(path)) as conn:
            found = _damage(conn, schema)
            return found or _read(conn, seconds)
    except sqlite3.Error as error:
        told = translate(error, path)
        if not isinstance(told, StorageCorrupt):
            raise told from error
        return SoundnessLook(str(error))
    except UnicodeDecodeError:  # SQLite's own message names what is damaged
        return SoundnessLook("its schema cannot be read")


def check_whole(conn: sqlite3.Connection, path: Path) -> None:
    """Read the file, and not what is known of it. Raises sqlite3.Error, StorageCorrupt."""
    conn.execute("PRAGMA shrink_memory")
    if conn.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise corrupt(path)


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes neither the file nor its log, not even when it is closed. Nobody may have
    the database open.
    """
    log = path.with_name(f"{path.name}-wal")
    # Without a log the file is all there is: read as such it needs no index of a log beside it, for which a
    # full disk has no room.
    kind = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?{kind}", uri=True, isolation_level=None)
    conn.text_factory = lenient
    return conn


def lenient(data: bytes) -> str:
    """The text of a column, which damage may have made no Unicode."""
    return data.decode("utf-8", "replace")


def _damage(conn: sqlite3.Connection, schema: Schema) -> SoundnessLook | None:
    """Whether what stands in the header and the schema is not what the steps make. That of another
    program, or of a newer agentd, is its own business. Raises StorageError for these.
    """
    tables = {str(name) for (name,) in conn.execute("SELECT name FROM sqlite_schema")}
    try:
        check_shape(conn, schema)
    except StorageCorrupt as error:
        if "sessions" not in tables and tables:
            raise
        return SoundnessLook(error.message)
    except StorageError:  # its version is a newer one's; or a damaged number, with our very tables
        if not _is_shaped(conn, schema):
            raise
        return SoundnessLook("the version in its header is damaged")
    return None


def _is_shaped(conn: sqlite3.Connection, schema: Schema) -> bool:
    with closing(sqlite3.connect(":memory:")) as copy:
        for step in schema.steps:
            copy.executescript(step)
        query = "SELECT type, name FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat*'"
        return set(copy.execute(query)) == set(conn.execute(query))


def _read(conn: sqlite3.Connection, seconds: float) -> SoundnessLook:
    for pragma in ("integrity_check", "quick_check"):
        with _time_limit(conn, seconds):
            try:
                (told,) = conn.execute(f"PRAGMA {pragma}(1)").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
            else:
                why = "" if told == "ok" else str(told).splitlines()[-1]
                return SoundnessLook(why, is_complete=pragma == "integrity_check")
    return SoundnessLook(is_complete=False)


@contextmanager
def _time_limit(conn: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupt what the connection does when the time is over."""
    timer = threading.Timer(seconds, conn.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


Synchronous = Literal["FULL", "NORMAL"]

BUSY_TIMEOUT = 5.0  # seconds that a statement waits for another program
_SUFFIXES = ("", "-wal", "-shm")


def open_file(
    path: Path, schema: Schema, synchronous: Synchronous, guard: Guard | None = None
) -> tuple[SqliteConnection, Problem | None]:
    """The one connection to `path`, brought to the schema's newest version, and what was wrong. `guard`
    seals and counts from there on.

    Raises StorageError and its kinds. To be called on the thread that will use the connection.
    """
    try:
        ensure_private_dir(path.parent)
        try:
            return _connect(path, schema, synchronous, guard), None
        except StorageError as error:
            if not (schema.derived and _is_hopeless(error)):
                raise
            problem = put_aside(path, schema, error)
        return _connect(path, schema, synchronous, guard), problem
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise no_room(path) from error
        raise StorageError(
            f"{path} cannot be opened ({error.strerror})",
            cure=f"make {path.parent} a directory that agentd's user can write",
        ) from error


def put_aside(path: Path, schema: Schema, error: StorageError) -> Problem:
    """Rename a derived database that no connection has open, or what stands in its place, and say
    so.
    """
    aside = next(
        candidate
        for n in count(1)
        if not os.path.lexists(candidate := path.with_name(f"{path.name}.corrupt-{n}"))
    )
    is_ours = _irregular(path) is None
    for suffix in _SUFFIXES:
        part = path.with_name(path.name + suffix)
        if os.path.lexists(part):
            part.rename(aside.with_name(aside.name + suffix))
    sync_directory(path.parent)
    when = "when you like" if is_ours else "when you know what it is"
    return Problem(
        f"{schema.name}_rebuilt",
        f"{path.name} was put aside as {aside.name}: {error.message}",
        f"nothing is lost, it is built again; delete {aside.name} {when}",
    )


def _connect(
    path: Path, schema: Schema, synchronous: Synchronous, guard: Guard | None
) -> SqliteConnection:
    if schema.derived and (found := _irregular(path)) is not None:
        raise StorageCorrupt(f"{found.name} is no file of its own", cure=f"move {found} away")
    _private_file(path)
    try:
        try:
            return _open_connection(path, schema, synchronous, guard)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_IOERR:
                raise
            # A full disk has no room for the file by which connections share the index of the log. To a
            # connection that is alone it is in memory: what is stored can be read, and a write says why not.
            return _open_connection(path, schema, synchronous, guard, alone=True)
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _open_connection(
    path: Path,
    schema: Schema,
    synchronous: Synchronous,
    guard: Guard | None,
    *,
    alone: bool = False,
) -> SqliteConnection:
    conn = SqliteConnection.to(path, BUSY_TIMEOUT)
    try:
        if alone:
            conn.execute("PRAGMA locking_mode = EXCLUSIVE")
        _prepare(conn, path, schema, synchronous, guard)
    except BaseException:
        conn.close()
        raise
    return conn


def _prepare(
    conn: SqliteConnection,
    path: Path,
    schema: Schema,
    synchronous: Synchronous,
    guard: Guard | None,
) -> None:
    conn.row_factory = sqlite3.Row
    check(conn, schema)
    # A large one is read behind the start, by `IntegrityWatch`: its owner has it verified.
    if schema.derived and path.stat().st_size < LARGE:
        check_whole(conn, path)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute(f"PRAGMA synchronous = {synchronous}")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA secure_delete = ON")
    conn.execute("PRAGMA temp_store = MEMORY")
    conn.execute("PRAGMA journal_size_limit = 16777216")
    if guard is not None:
        conn.text_factory = (
            lenient  # one damaged text must not keep a whole session from being read
        )
    done = check(conn, schema)
    migrate(conn, schema)
    if done < len(schema.steps) and not schema.derived:
        # The tables are to stand in the file itself, so that what befalls the log does not take them.
        with suppress(sqlite3.OperationalError):
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if guard is not None:
        guard.open(conn)
    if is_unclean(path):
        # A full disk or another reader keeps nobody from starting; it stays due.
        with suppress(sqlite3.OperationalError, StorageError):
            clear(conn, path)


def _irregular(path: Path) -> Path | None:
    """Which of a database's files is a directory, a link, a pipe or the like; None for none."""
    for suffix in _SUFFIXES:
        part = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):
                return part
    return None


def _is_hopeless(error: StorageError) -> bool:
    # Damaged, somebody else's or a newer agentd's. Behind a cause there is a disk that is full or a
    # file that is locked, where a new file would fare no better.
    return isinstance(error, StorageCorrupt) or error.__cause__ is None


def _private_file(path: Path) -> None:
    # Before our connection exists: closing any other descriptor of the file later on would drop
    # the locks that SQLite holds. SQLite gives the -wal and -shm files the same mode.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    path.chmod(0o600)


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


def lost_file_problem(path: Path, *, derived: bool) -> Problem:
    """What to tell while a database's file is gone."""
    text = f"{path.name} was deleted or exchanged while agentd runs"
    if derived:
        return Problem("index_lost", text, "nothing is lost, it is written again within a minute")
    return Problem(
        "storage_lost",
        f"{text}; what it held is lost when agentd stops",
        "`agentd backup` now, while it runs; then stop agentd and restore that backup",
    )


def copy_database(conn: sqlite3.Connection, path: Path) -> Path:
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
