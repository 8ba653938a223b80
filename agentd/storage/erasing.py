"""Removes every byte of deleted content from a database's files.

SQLite's secure_delete overwrites the space that a deletion frees, but not the copies that a
rearrangement of a page leaves between its pointers and its cells; `blank` does. The write-ahead log
keeps former pages, so it is truncated. A marker file beside the database, created before the
deletion, makes the next start finish the work.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agentd.core.errors import StorageError
from agentd.core.paths import sync_directory, sync_file
from agentd.core.spans import Span

_PART = 1 << 20  # bytes read at once; a multiple of every page size
_HEADER = 100  # bytes of the file header, at the start of page 1
_PAGE_SIZE, _RESERVED, _FREE, _AUTO_VACUUM = 16, 20, 32, 52  # their offsets in the header
_INNER, _LEAF = frozenset({2, 5}), frozenset({10, 13})
_TREE = struct.Struct(">BHHH")  # kind, first free block, number of cells, offset of the cells
_PAIR = struct.Struct(">HH")
_WORDS = struct.Struct(">II")
# In a larger file an overflow page may look like a b-tree page: its first byte is the highest byte
# of the next page's number.
_MOST_PAGES = 1 << 24
_SUFFIX = "-unclean"
_SPARSE = 4  # rewrite a file if more than 1 of 4 pages is free: that returns the space to the disk


class SqliteConnection(sqlite3.Connection):
    """A connection that also holds a descriptor of its database file, for `blank`. The descriptor
    is opened before SQLite's own and closed after it, because closing any descriptor of a file
    drops all locks that the process holds on it.
    """

    descriptor: int | None = None

    @classmethod
    def to(cls, path: Path, patience: float) -> SqliteConnection:
        """Connect to the file; statements wait up to `patience` seconds for another program. Raises
        sqlite3.Error.
        """
        descriptor = None
        with suppress(OSError):  # without it, `clear` rewrites the file
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
        """Close the connection, then the descriptor."""
        super().close()
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def mark_unclean(path: Path) -> bool:
    """Create the marker, durably: deleted bytes may be left in the files of this database. Return
    False if the marker existed. Raises StorageError.
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
    """Whether the marker exists."""
    return _marker(path).exists()


def unmark(path: Path) -> None:
    """Remove the marker: nothing was deleted, or no deleted byte is left. Raises StorageError."""
    try:
        _marker(path).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"{_marker(path).name} cannot be removed ({error.strerror})",
            cure=(
                f"check the disk and the rights of {path.parent}; agentd tries "
                "again with the next write"
            ),
        ) from error


def clear(conn: sqlite3.Connection, path: Path) -> None:
    """Remove all deleted bytes from the file, truncate the log and remove the marker. Unused bytes
    are blanked, which takes one reading of the file; where that is impossible or much of the file
    is free, SQLite rewrites the file (VACUUM).

    No transaction may be open. Raises sqlite3.Error, and StorageError if another program reads the
    database or the log cannot be synced; the marker then stays.
    """
    _cut(conn, path)
    try:
        is_blank = _try_blank(conn, path)
    except (NotPlainError, OSError):
        is_blank = False
    if not is_blank:
        conn.execute("VACUUM")
        _cut(conn, path)
    unmark(path)


def drop_asides(path: Path) -> None:
    """Delete damaged files that were put aside for this database: they hold the same content.
    Anything that is not a regular file was not created by agentd and stays.
    """
    for aside in path.parent.glob(f"{path.name}.corrupt-*"):
        if stat.S_ISREG(aside.lstat().st_mode):
            aside.unlink()


def blank(descriptor: int, shape: PageShape) -> int:
    """Overwrite all bytes of the file that belong to no stored content with zeros, durably; return
    how many pages had any. Raises NotPlainError, OSError.

    Each page says which of its bytes are used, and SQLite never reads the others. They can
    therefore be overwritten without SQLite and without a log: a crash in the middle leaves a sound
    file.

    `descriptor` must have been opened before SQLite's own and be closed after it, because closing
    any descriptor of the file drops the locks of the process. The caller holds the write lock, and
    the log is empty.
    """
    changed = 0
    zeros = bytes(shape.page_size)
    unused = _unused_spans(descriptor, shape)
    for first in range(0, shape.count * shape.page_size, _PART):
        part = os.pread(descriptor, _PART, first)
        for number, at in _doubtful(part, first, shape, unused):
            spans = unused.get(number) or _gaps(part, at, shape, _HEADER if number == 1 else 0)
            has_any = False
            for start, end in spans:
                if part[at + start : at + end] != zeros[: end - start]:
                    os.pwrite(descriptor, zeros[: end - start], first + at + start)
                    has_any = True
            changed += has_any
    if changed:
        os.fsync(descriptor)
    return changed


class NotPlainError(Exception):
    """The file has a format or damage that `blank` does not handle."""


class PageShape(Struct, frozen=True):
    """The page layout, from the file's header."""

    page_size: int
    usable: int  # bytes of a page without its reserved end
    first_free: int  # number of the first page in the list of free pages; 0: none
    free: int  # number of free pages
    count: int  # number of pages in the file

    @classmethod
    def of(cls, descriptor: int) -> PageShape:
        """Read the page layout of an open file. Raises NotPlainError, OSError."""
        head = os.pread(descriptor, _HEADER, 0)
        size = os.fstat(descriptor).st_size
        if len(head) < _HEADER:
            raise NotPlainError("there is no header")
        (page_size,) = struct.unpack_from(">H", head, _PAGE_SIZE)
        page_size = 1 << 16 if page_size == 1 else page_size
        first_free, free = _WORDS.unpack_from(head, _FREE)
        (auto_vacuum,) = struct.unpack_from(">I", head, _AUTO_VACUUM)
        if page_size < 512 or page_size & (page_size - 1) or size % page_size or auto_vacuum:
            raise NotPlainError("its pages are of another kind")
        count = size // page_size
        if count >= _MOST_PAGES:
            raise NotPlainError("it is too large")
        return cls(page_size, page_size - head[_RESERVED], first_free, free, count)


def _doubtful(
    part: bytes, first: int, shape: PageShape, unused: Container[int]
) -> Iterator[tuple[int, int]]:
    """Yield the number and the offset of each page in the part at byte `first` of the file, without
    those that are leaves whose only gap is all zero: nearly all pages are.
    """
    heads = struct.Struct(f"{_TREE.format}{shape.page_size - _TREE.size}x")
    zeros = bytes(shape.page_size)
    pages = enumerate(heads.iter_unpack(part), first // shape.page_size + 1)
    for number, (kind, free, cells, begin) in pages:
        at = (number - 1) * shape.page_size - first
        start = 8 + 2 * cells
        is_usual = kind in _LEAF and not free and start <= begin <= shape.usable
        if number in unused or not is_usual or part[at + start : at + begin] != zeros[start:begin]:
            yield number, at


def _gaps(part: bytes, at: int, shape: PageShape, header: int) -> Iterator[Span]:
    """Yield the unused spans of the page at offset `at`, relative to the page; nothing for a page
    that is not part of a b-tree. Raises NotPlainError if the page is damaged.
    """
    kind, free, cells, begin = _TREE.unpack_from(part, at + header)
    if kind in _LEAF:
        start = header + 8 + 2 * cells
    elif kind in _INNER:
        start = header + 12 + 2 * cells
    else:
        return
    begin = begin or 1 << 16
    if not start <= begin <= shape.usable:
        raise NotPlainError("a page is damaged")
    yield start, begin
    while free:
        if not begin <= free <= shape.usable - 4:
            raise NotPlainError("a page is damaged")
        following, size = _PAIR.unpack_from(part, at + free)
        if size < 4 or free + size > shape.usable or (following and following < free + size):
            raise NotPlainError("a page is damaged")
        yield free + 4, free + size
        free = following


def _unused_spans(descriptor: int, shape: PageShape) -> dict[int, list[Span]]:
    """Return the unused spans of the free pages, by page number. Raises NotPlainError if the list
    of free pages is damaged.
    """
    found: dict[int, list[Span]] = {}
    trunk = shape.first_free
    while trunk:
        page = os.pread(descriptor, shape.page_size, (trunk - 1) * shape.page_size)
        if trunk in found or not 1 < trunk <= shape.count or len(page) < shape.page_size:
            raise NotPlainError("the list of free pages is damaged")
        following, count = _WORDS.unpack_from(page)
        if 8 + 4 * count > shape.usable:
            raise NotPlainError("the list of free pages is damaged")
        found[trunk] = [(8 + 4 * count, shape.usable)]
        for leaf in struct.unpack_from(f">{count}I", page, 8):
            if leaf in found or not 1 < leaf <= shape.count:
                raise NotPlainError("the list of free pages is damaged")
            found[leaf] = [(0, shape.usable)]
        trunk = following
    return found


def _cut(conn: sqlite3.Connection, path: Path) -> None:
    is_busy, *_ = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:  # SQLite does not raise, and the log may still hold former pages
        raise _read_by_others(path)
    # SQLite does not sync the truncation: after a power cut the log could come back with all former
    # pages. SQLite has no locks on the log, so a descriptor of it may be closed.
    try:
        sync_file(_log(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(
            (
                f"{_log(path).name} cannot be synced ({error.strerror}): what was "
                "deleted may come back in it"
            ),
            cure="look after the disk; agentd tries again with the next write",
        ) from error


def _try_blank(conn: sqlite3.Connection, path: Path) -> bool:
    """Blank the file; return False if it cannot be blanked or should rather be rewritten. Raises
    NotPlainError, OSError, StorageError.
    """
    if not isinstance(conn, SqliteConnection) or conn.descriptor is None:
        return False
    # With the write lock held, no other program moves pages from the log into the file.
    conn.execute("BEGIN IMMEDIATE")
    try:
        if _log_of(path):
            raise _read_by_others(path)
        shape = PageShape.of(conn.descriptor)
        if shape.free * _SPARSE > shape.count:
            return False
        blank(conn.descriptor, shape)
    finally:
        conn.execute("ROLLBACK")
    conn.execute("PRAGMA shrink_memory")  # drop cached pages: the file has changed under them
    return True


def _log_of(path: Path) -> int:
    """Return the size of the write-ahead log in bytes."""
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
