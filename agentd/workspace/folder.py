"""One directory tree of files: whole reads, durable changes and listings. Blocking; decides nothing
about who may do what.

A change puts a new file in the place of the old one and never writes to an existing file: between
any check and the write, an opened file could get a link elsewhere, or be unlinked. The caller of a
change holds the lock of the path.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from operator import attrgetter
from pathlib import Path

from msgspec import Struct

from agentd.core.errors import FileUnreadable, ScopeMissing, WorkspaceError
from agentd.core.failpoints import hit
from agentd.core.paths import replacing_file, write_durably
from agentd.workspace.resolver import ConfinedFolder, no_workspace, require_regular

_TEMP_PREFIX, _TEMP_SUFFIX = ".agentd-", ".tmp"
_PIECE = 1 << 16
FOLDER_LINK = "a symbolic link to a folder"


class Stamp(Struct, frozen=True):
    """The metadata of a file by which an unchanged file is recognised without reading it."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    is_alone: bool = True  # the file has no second hard link


class FolderEntry(Struct, frozen=True, gc=False):  # a large workspace has many of these
    """One entry of a directory."""

    name: str
    size: int
    is_dir: bool
    mtime_ns: int
    ctime_ns: int
    inode: int
    is_alone: bool = True  # the file has no second hard link; always true for directories
    odd: str = ""  # the kind of an entry that is neither file nor directory: never opened

    @property
    def is_odd(self) -> bool:
        """Whether the entry is neither a file nor a directory."""
        return bool(self.odd)


class Folder:
    """The files below `root`. `parts` are the components of a path relative to it. Methods raise
    OSError besides the errors that they name.

    `passing` is called with the names of failpoints between the steps of a change. `gone` makes the
    error for a missing root.
    """

    def __init__(
        self,
        root: Path,
        *,
        native: bool = True,
        passing: Callable[[str], None] = hit,
        gone: Callable[[Path], WorkspaceError] = no_workspace,
    ) -> None:
        self.root = root
        self._pass = passing
        self.beneath = ConfinedFolder(root, native=native, gone=gone)

    @contextmanager
    def held(self) -> Iterator[Folder]:
        """Yield the same folder with its root kept open, for reading many files in a row. Raises
        the error of `gone` for a missing root.
        """
        with self.beneath.held() as beneath:
            own = copy(self)
            own.beneath = beneath
            yield own

    def stamp(self, parts: Sequence[str], *, alone: bool = False) -> Stamp:
        """Return the metadata of a regular file. Raises PathRefused for anything else. With
        `alone`, a file with a second hard link is treated as absent: FileNotFoundError.
        """
        found = self.beneath.stat(parts)
        if alone:
            _require_alone(found, parts)
        require_regular(found, parts)
        times = found.st_mtime_ns, found.st_ctime_ns
        return Stamp(found.st_ino, found.st_size, *times, is_alone=found.st_nlink == 1)

    def read(self, parts: Sequence[str], limit: int, *, alone: bool = False) -> bytes:
        """Return the whole file. Raises PathRefused for anything but a regular file, and
        FileUnreadable if it is larger than `limit` bytes. With `alone`, a file with a second hard
        link is treated as absent: FileNotFoundError.
        """
        fd, found = self.beneath.open(parts, os.O_RDONLY)
        try:
            if alone:
                _require_alone(found, parts)
            if found.st_size > limit:
                raise too_large("/".join(parts), found.st_size, limit)
            pieces, size = [], 0
            room = found.st_size + 1  # so that one call reads the whole file and tells its end
            while piece := os.read(fd, room):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise too_large("/".join(parts), max(size, found.st_size), limit)
                if size == found.st_size and len(piece) < room:
                    break
                room = _PIECE if size > found.st_size else found.st_size + 1 - size
        finally:
            os.close(fd)
        return b"".join(pieces)

    def read_for_change(self, parts: Sequence[str], limit: int) -> bytes | None:
        """Return the whole file; None if it is absent. Raises PathRefused if it must not be changed
        (not a regular file, or more than one hard link), FileUnreadable if it is larger than
        `limit` bytes.
        """
        try:
            found = self.beneath.stat(parts)
        except FileNotFoundError:
            return None
        require_regular(found, parts, alone=True)
        return self.read(parts, limit)

    def entries(self, parts: Sequence[str]) -> list[FolderEntry]:
        """Return the regular files and directories in a directory, sorted by name. Of other kinds
        of entries only those named like a note and links to directories are included, as odd ones.
        """
        found = []
        with self.beneath.folder(parts) as fd, os.scandir(fd) as entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # it went away while we looked
                    continue
                kind = stat.S_IFMT(info.st_mode)
                is_dir, size, odd = kind == stat.S_IFDIR, 0, ""
                if kind == stat.S_IFREG:
                    size = info.st_size
                elif not is_dir and not (odd := _oddity(entry, info.st_mode)):
                    continue
                times, is_alone = (info.st_mtime_ns, info.st_ctime_ns), is_dir or info.st_nlink == 1
                found.append(
                    FolderEntry(entry.name, size, is_dir, *times, info.st_ino, is_alone, odd)
                )
        found.sort(key=attrgetter("name"))
        return found

    def replace(self, parts: Sequence[str], data: bytes) -> None:
        """Make `data` the whole file, atomically: a crash leaves the old content or the new one."""
        with self._replacing(parts, data):
            pass

    def exchange(self, parts: Sequence[str], data: bytes, last_look: Callable[[], None]) -> bytes:
        """Do what `replace` does, for files that other programs write too. `last_look` is called
        just before the rename, since they may write during the sync, and may raise to give the
        change up. Returns what they appended to the old file after `last_look` because they had it
        open: these bytes are in no file any more.
        """
        old = self._open_or_none(parts)
        if old is None:
            with self._replacing(parts, data, last_look):
                return b""
        try:
            size = os.fstat(old).st_size
            with self._replacing(parts, data, last_look):
                return os.pread(old, max(0, os.fstat(old).st_size - size), size)
        finally:
            os.close(old)

    def _open_or_none(self, parts: Sequence[str]) -> int | None:
        try:
            with self.beneath.opened(parts, os.O_RDONLY) as fd:
                return os.dup(fd)
        except FileNotFoundError:
            return None

    def replace_open(self, parts: Sequence[str], data: bytes) -> int:
        """Do what `replace` does and return a descriptor positioned at the end of the new file,
        which the caller closes. Only agentd has ever written to this file, whatever its name is
        linked to later.
        """
        with self._replacing(parts, data) as fd:
            return os.dup(fd)

    def extend(self, parts: Sequence[str], data: bytes, size: int) -> bool:
        """Append the bytes to the file in place and durably, if its size is `size`; return whether
        they were. A crash may leave a part of them. Only for folders in which no other program
        writes.
        """
        try:
            with self.beneath.opened(parts, os.O_WRONLY | os.O_APPEND) as fd:
                if os.fstat(fd).st_size != size:
                    return False
                append_durably(fd, data)
        except FileNotFoundError:
            return False
        return True

    def hold(self, parts: Sequence[str]) -> int:
        """Return a descriptor that identifies the file but cannot read it, which the
        caller closes.
        """
        return self.beneath.hold(parts)

    def leads_to(self, parts: Sequence[str], fd: int) -> bool:
        """Whether the path leads to the open file `fd`."""
        try:
            return os.path.samestat(self.beneath.stat(parts), os.fstat(fd))
        except FileNotFoundError:
            return False

    @contextmanager
    def _replacing(
        self,
        parts: Sequence[str],
        data: bytes,
        last_look: Callable[[], None] | None = None,
    ) -> Iterator[int]:
        def look() -> None:
            self._pass("file.temp_written")
            if last_look is not None:
                last_look()

        part = f"{_TEMP_PREFIX}{secrets.token_hex(8)}{_TEMP_SUFFIX}"
        seen = partial(self._pass, "file.replaced")
        with (
            self.beneath.folder(parts[:-1], make=True) as folder,
            replacing_file(folder, parts[-1], data, part, last_look=look, seen=seen) as fd,
        ):
            yield fd

    def delete(self, parts: Sequence[str], last_look: Callable[[], None] = lambda: None) -> None:
        """Delete the file durably. `last_look` is called just before and may raise."""
        with self.beneath.folder(parts[:-1]) as folder:
            last_look()
            os.unlink(parts[-1], dir_fd=folder)
            self._pass("file.replaced")
            os.fsync(folder)

    def clear_strays(self) -> int:
        """Remove temporary files that a crash during `replace` left behind; return how many.
        Folders below the root that cannot be listed (no permission, path too long for the system)
        are skipped.
        """
        folders, count = self._clear(())
        while folders:  # not recursive: folders may be nested deeper than Python's call stack
            with suppress(OSError):
                inner, cleared = self._clear(folders.pop())
                folders += inner
                count += cleared
        return count

    def _clear(self, parts: tuple[str, ...]) -> tuple[list[tuple[str, ...]], int]:
        """Remove the temporary files in one folder; return its subfolders and how many were
        removed.
        """
        folders, count = [], 0
        with self.beneath.folder(parts) as folder:
            for entry in self.entries(parts):
                if entry.is_dir:
                    folders.append((*parts, entry.name))
                elif entry.name.startswith(_TEMP_PREFIX) and entry.name.endswith(_TEMP_SUFFIX):
                    os.unlink(entry.name, dir_fd=folder)
                    count += 1
        return folders, count


def _require_alone(found: os.stat_result, parts: Sequence[str]) -> None:
    if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/".join(parts))


def too_large(path: str, size: int, limit: int) -> FileUnreadable:
    """Return the error for a file over a limit."""
    return FileUnreadable(
        f"{path} is too large: {size:,} bytes, the limit is {limit:,}",
        cure="split it into smaller files",
    )


def _oddity(entry: os.DirEntry[str], mode: int) -> str:
    """Return the kind of the entry if it is named like a note or is a link to a directory; "" for
    others.
    """
    is_note = entry.name.casefold().endswith(".md")
    if stat.S_ISLNK(mode):
        if not entry.name.startswith(".") and _leads_to_directory(entry):
            return FOLDER_LINK
        return "a symbolic link" if is_note else ""
    if not is_note:
        return ""
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _leads_to_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()  # follows the link for a stat, opens nothing
    except OSError:
        return False


def append_durably(fd: int, data: bytes) -> None:
    """Append the data to a file that is open for appending, and sync. If writing fails, as on a
    full disk, the part already written is removed again. Raises OSError.
    """
    start = os.fstat(fd).st_size
    try:
        write_durably(fd, data)
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, start)
        raise


def outside(path: Path, setting: str) -> Folder:
    """Return a read-only folder outside the workspace; for a path that ends in `.md`, one that
    contains only this file. `setting` is the setting that names the path, for error messages. If
    the path does not exist, every use raises ScopeMissing.
    """
    gone = partial(_missing_error, setting, path)
    if path.suffix.casefold() == ".md":
        return SingleFile(path, lambda _: gone())
    return Folder(path, gone=lambda _: gone())


class SingleFile(Folder):
    """A read-only folder that contains a single file."""

    def __init__(self, file: Path, gone: Callable[[Path], ScopeMissing]) -> None:
        super().__init__(file.parent, gone=gone)
        self._file = file
        self._gone = gone

    def stamp(self, parts: Sequence[str], *, alone: bool = False) -> Stamp:
        """See Folder."""
        return super().stamp(self._checked(parts), alone=alone)

    def read(self, parts: Sequence[str], limit: int, *, alone: bool = False) -> bytes:
        """See Folder."""
        return super().read(self._checked(parts), limit, alone=alone)

    def entries(self, parts: Sequence[str]) -> list[FolderEntry]:
        """See Folder. Raises ScopeMissing."""
        if parts:
            return []
        found = [entry for entry in super().entries(()) if entry.name == self._file.name]
        if not found:
            raise self._gone(self._file)
        return found

    def _checked(self, parts: Sequence[str]) -> Sequence[str]:
        if not os.path.lexists(self._file):
            raise self._gone(self._file)
        if tuple(parts) != (self._file.name,):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return parts


def _missing_error(setting: str, path: Path) -> ScopeMissing:
    if path.exists():
        return ScopeMissing(
            f"{path} is neither a folder nor a file that ends in .md",
            cure=f"Name another file, or the folder it is in, in {setting}.",
        )
    return ScopeMissing(
        f"{path} is not there",
        cure=f"Mount it or put it there, or correct its line in {setting}.",
    )
