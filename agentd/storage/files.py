"""Database files: created private, opened, checked for damage, watched while open, put aside.
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
from itertools import count
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agentd.core.errors import StorageCorrupt, StorageError
from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir, sync_directory
from agentd.storage.erasing import SqliteConnection, clear, is_unclean
from agentd.storage.migrations import Schema, check, check_shape, migrate
from agentd.storage.proofs import ProofGuard
from agentd.storage.sqlite_errors import corrupt, no_room, translate

LARGE = 16 * 1024 * 1024  # bytes; a larger derived file is checked after the start (0.02 s)
SECONDS = 0.5  # time limit of each of the two readings at a start


class SoundnessLook(Struct, frozen=True):
    """The result of `look`: the damage ("" if none was seen), and whether everything was read."""

    damage: str = ""
    is_complete: bool = True


def look(path: Path, schema: Schema, seconds: float = SECONDS) -> SoundnessLook:
    """Check a database that no program has open, without writing. Everything is read, indices
    included, if that takes less than `seconds`; else the pages alone, for at most `seconds` more.

    Raises StorageError for a file that cannot be read for another reason than damage, that is not
    agentd's, or that a newer agentd wrote.
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
    except UnicodeDecodeError:  # SQLite's error message itself contains the damaged text
        return SoundnessLook("its schema cannot be read")


def check_whole(conn: sqlite3.Connection, path: Path) -> None:
    """Check the pages of the file itself, not those in SQLite's cache. Raises sqlite3.Error,
    StorageCorrupt.
    """
    conn.execute("PRAGMA shrink_memory")
    if conn.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise corrupt(path)


def read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that changes neither the file nor its log, not even when it is closed. No
    program may have the database open.
    """
    log = path.with_name(f"{path.name}-wal")
    # Without a log, `immutable` avoids creating the log's index file, for which a full disk has no
    # room.
    kind = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?{kind}", uri=True, isolation_level=None)
    conn.text_factory = lenient
    return conn


def lenient(data: bytes) -> str:
    """Decode the text of a column, which may not be valid UTF-8 after damage."""
    return data.decode("utf-8", "replace")


def _damage(conn: sqlite3.Connection, schema: Schema) -> SoundnessLook | None:
    """Return the damage if header and schema differ from what the schema's steps make; None if they
    do not. Raises StorageError for a database of another program or of a newer agentd.
    """
    tables = {str(name) for (name,) in conn.execute("SELECT name FROM sqlite_schema")}
    try:
        check_shape(conn, schema)
    except StorageCorrupt as error:
        if "sessions" not in tables and tables:
            raise
        return SoundnessLook(error.message)
    except StorageError:  # a newer agentd's version, or a damaged number in a file with our tables
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
    """Interrupt the statements of the connection once `seconds` have passed."""
    timer = threading.Timer(seconds, conn.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


Synchronous = Literal["FULL", "NORMAL"]

BUSY_TIMEOUT = 5.0  # seconds that a statement waits for another program
_SUFFIXES = ("", "-wal", "-shm", "-journal")


def open_file(
    path: Path, schema: Schema, synchronous: Synchronous, guard: ProofGuard | None = None
) -> tuple[SqliteConnection, Problem | None]:
    """Open the one connection to `path` and migrate it to the schema's newest version; return it
    with the problem for which a derived file was put aside, if any. From then on `guard` makes the
    digests of rows and counts commits.

    Raises StorageError and its subclasses. Must be called on the thread that uses the connection.
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
    """Rename a derived database that no connection has open, or whatever is at its path; return the
    Problem that reports it.
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
    path: Path, schema: Schema, synchronous: Synchronous, guard: ProofGuard | None
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
            # A full disk has no room for the -shm file, through which connections share the index
            # of the log. An exclusive connection keeps it in memory: reads work, writes report why.
            return _open_connection(path, schema, synchronous, guard, alone=True)
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _open_connection(
    path: Path,
    schema: Schema,
    synchronous: Synchronous,
    guard: ProofGuard | None,
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
    guard: ProofGuard | None,
) -> None:
    conn.row_factory = sqlite3.Row
    check(conn, schema)
    # A large one is checked after the start, once its store calls `Database.verify`.
    if schema.derived and path.stat().st_size < LARGE:
        check_whole(conn, path)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute(f"PRAGMA synchronous = {synchronous}")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA secure_delete = ON")
    conn.execute("PRAGMA temp_store = MEMORY")
    conn.execute("PRAGMA journal_size_limit = 16777216")
    if guard is not None:
        # One damaged text must not keep a whole session from being read.
        conn.text_factory = lenient
    done = check(conn, schema)
    migrate(conn, schema)
    if done < len(schema.steps) and not schema.derived:
        # Move the new tables into the file itself, so that they survive a loss of the log.
        with suppress(sqlite3.OperationalError):
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if guard is not None:
        guard.open(conn)
    if is_unclean(path):
        # A full disk or another reader must not prevent a start; the erasure stays due.
        with suppress(sqlite3.OperationalError, StorageError):
            clear(conn, path)


def _irregular(path: Path) -> Path | None:
    """Return which of a database's files is not a regular file (a directory, a link, a pipe); None
    if all are.
    """
    for suffix in _SUFFIXES:
        part = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):
                return part
    return None


def _is_hopeless(error: StorageError) -> bool:
    # True if the file is damaged, not agentd's or a newer agentd's. An error with a cause means a
    # full disk or a locked file, where a new file would not help.
    return isinstance(error, StorageCorrupt) or error.__cause__ is None


def _private_file(path: Path) -> None:
    # Done before our connection exists: closing another descriptor of the file later would drop
    # the locks that SQLite holds. SQLite gives the -wal and -shm files the same mode.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    path.chmod(0o600)


SELDOM = 20  # looks between two checks of a large file that agentd itself is writing


class _Look(Struct, frozen=True):
    """A file's identity and size at one look, and how many commits agentd had made by then."""

    inode: tuple[int, int]
    size: int
    mtime_ns: int
    commits: int


class IntegrityWatch:
    """Watches the file of an open database without opening it: closing any descriptor of the file
    would drop the locks that SQLite holds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: _Look | None = None
        self._looks = 0
        self._written = False
        self._is_unread = False

    def begin(self, commits: int) -> None:
        """Record the file as it was just opened. It was checked then unless it is large: a large
        one is suspect at the next look.
        """
        self._last = self._look(commits)
        self._looks, self._written = 0, False
        self._is_unread = self._last is not None and self._last.size >= LARGE

    def is_gone(self) -> bool:
        """Whether the file is missing or another one has taken its place."""
        now = self._look(0)
        return self._last is not None and (now is None or now.inode != self._last.inode)

    def is_suspect(self, commits: int) -> bool:
        """Whether the file must be checked because it has changed. For a large file that grows by
        commits of agentd itself (`commits` has changed), only every 20th call says so.
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
    """Return the Problem to report while a database's file is gone."""
    text = f"{path.name} was deleted or exchanged while agentd runs"
    if derived:
        return Problem("index_lost", text, "nothing is lost, it is written again within a minute")
    return Problem(
        "storage_lost",
        f"{text}; what it held is lost when agentd stops",
        "`agentd backup` now, while it runs; then stop agentd and restore that backup",
    )


def copy_database(conn: sqlite3.Connection, path: Path) -> Path:
    """Write all that the connection sees into a new file beside `path` and return its path. The
    connection's own file may be deleted already. Raises sqlite3.Error, OSError.
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
    """Move a copy to the path of the database, which no connection has open; return the Problem
    that reports it.
    """
    cure = "nothing is lost"
    if os.path.lexists(path):
        aside = put_aside(path, schema, StorageCorrupt("it took the place of another"))
        cure = f"{cure}; {aside.text}"
    for suffix in ("-wal", "-shm"):  # of the former file: SQLite would apply them to the copy
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    copy.rename(path)
    text = f"{path.name} was deleted or exchanged while agentd ran, and was written again"
    return Problem("index_restored", text, cure)
