"""Database files: made private, opened, and put aside when they cannot be read."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Literal

from agentd.core.errors import StorageCorrupt, StorageError
from agentd.core.health import Problem
from agentd.core.paths import ensure_private_dir, sync_directory
from agentd.storage.erasing import SqliteConnection, clear, is_unclean
from agentd.storage.migrations import Schema, check, migrate
from agentd.storage.proofs import Guard
from agentd.storage.soundness import LARGE, check_whole, lenient
from agentd.storage.sqlite_errors import no_room, translate

Synchronous = Literal["FULL", "NORMAL"]

PATIENCE = 5.0  # seconds that a statement waits for another program
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
            return _opened(path, schema, synchronous, guard)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_IOERR:
                raise
            # A full disk has no room for the file by which connections share the index of the log. To a
            # connection that is alone it is in memory: what is stored can be read, and a write says why not.
            return _opened(path, schema, synchronous, guard, alone=True)
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _opened(
    path: Path,
    schema: Schema,
    synchronous: Synchronous,
    guard: Guard | None,
    *,
    alone: bool = False,
) -> SqliteConnection:
    conn = SqliteConnection.to(path, PATIENCE)
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
