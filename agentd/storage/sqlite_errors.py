"""Translates SQLite's errors into agentd's own."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from agentd.core.errors import StorageCorrupt, StorageError, StorageFull
from agentd.core.health import Problem

_LATCHING = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_READING = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ})
_MISSING = "no such "  # table or column: the schema must be damaged, ours has all that we name
_ROOM = 64 * 1024  # bytes; with less free, a failed write is taken for a full disk


def is_lost_sync(error: sqlite3.Error) -> bool:
    """Whether a sync failed. The kernel may have dropped the pages and will not report it again, so
    no later sync of the same file proves anything.
    """
    return _code(error) in _LATCHING


def is_of_the_copied(error: sqlite3.Error) -> bool:
    """Whether a copy failed because of the database being copied, not of the new file."""
    return _code(error) & 0xFF in _DAMAGE or _code(error) in _READING


def translate(error: sqlite3.Error, path: Path) -> StorageError:
    """Return agentd's own error for an error of SQLite about the database `path`."""
    primary = _code(error) & 0xFF
    may_lack_room = primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    if may_lack_room and _takes_no_more_files(path.parent):
        return no_room(path)
    if primary == sqlite3.SQLITE_FULL or (
        primary == sqlite3.SQLITE_IOERR and _is_full(error, path)
    ):
        return no_room(path)
    if primary in _DAMAGE or _code(error) == sqlite3.SQLITE_IOERR_SHORT_READ:
        return corrupt(path)
    if primary == sqlite3.SQLITE_ERROR and str(error).startswith(_MISSING):
        return corrupt(path)
    if primary == sqlite3.SQLITE_BUSY:
        return StorageError(
            f"{path.name} is locked by another program",
            cure="close what else has the database open; only the daemon may",
        )
    return StorageError(
        f"{path.name} could not be used ({_name(error)})",
        cure=f"check the disk and the rights of {path.parent}, then restart agentd",
    )


def no_room(path: Path) -> StorageFull:
    """Return the error for a file system without space, or without inodes, for the file."""
    if _takes_no_more_files(path.parent):
        return StorageFull(
            f"no inodes left for {path.name}; nothing was stored",
            cure=f"delete files on the file system of {path.parent} (`df -i` counts them); "
            "agentd goes on by itself",
        )
    return StorageFull(
        f"no space left for {path.name}; nothing was stored",
        cure=f"free space on the file system of {path.parent}; agentd goes on by itself",
    )


def lost_sync_problem(path: Path) -> Problem:
    """Return the Problem to report after a failed sync."""
    return Problem(
        "storage_sync_failed",
        f"the disk failed to store {path.name}; nothing more is accepted",
        "check the disk, then restart agentd",
    )


def corrupt(path: Path) -> StorageCorrupt:
    """Return the error for a file that SQLite cannot read."""
    return StorageCorrupt(
        f"{path.name} is damaged",
        cure=(
            "`agentd restart` salvages what can be read of it and keeps the "
            "file; or restore a backup"
        ),
    )


def _takes_no_more_files(folder: Path) -> bool:
    """Whether the file system has a limited number of inodes and none are left."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_files > 0 and disk.f_favail == 0


def _is_full(error: sqlite3.Error, path: Path) -> bool:
    if _code(error) == sqlite3.SQLITE_IOERR_SHMSIZE:
        return True
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0))


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", type(error).__name__))
