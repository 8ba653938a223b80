"""Opens files below a directory and nowhere else, whatever is renamed or linked at the same time.

Where possible the kernel enforces this: openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
RESOLVE_NO_MAGICLINKS. Elsewhere (before Linux 5.6, or under a filter that forbids the call) each
part is opened relative to the directory before it, with O_NOFOLLOW. Checking a path first and
opening it afterwards would leave a gap in which a link could be put in place; here a path is
resolved only once.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentd.core.errors import PathRefused, WorkspaceError

FOLDER_MODE = 0o700

_OPENAT2 = 437  # the same number on every architecture named below
_MACHINES = frozenset({"x86_64", "aarch64", "armv7l", "i686", "riscv64", "ppc64le", "s390x"})
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_ATTEMPTS = 32  # the kernel answers EAGAIN when a rename raced with it
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a FIFO must not block, and a terminal must not become the controlling one.
_FILE = os.O_NONBLOCK | os.O_NOCTTY


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_libc = ctypes.CDLL(None, use_errno=True)


def no_workspace(root: Path) -> WorkspaceError:
    """Return the error for a missing workspace of the user's own."""
    return WorkspaceError(
        f"the workspace {root} is not there",
        cure="`agentd init` makes it; or mount it, or correct [workspace] path",
    )


class ConfinedFolder:
    """Opens files and directories below `root`. All methods block and raise OSError besides the
    errors that they name.

    The root is opened anew each time, so a workspace that was moved away and put back is found.
    `native=False` disables openat2.
    """

    def __init__(
        self,
        root: Path,
        *,
        native: bool = True,
        gone: Callable[[Path], WorkspaceError] = no_workspace,
        held: int | None = None,
    ) -> None:
        """`gone` makes the error for a missing root. `held` is a descriptor of the root, if it is
        open already.
        """
        self._root = root
        self._gone = gone
        self._native = native and platform.machine() in _MACHINES
        self._held = held
        self._last: tuple[Sequence[str], int] | None = None  # the directory of the last file, held

    @contextmanager
    def held(self) -> Iterator[ConfinedFolder]:
        """Yield the same object with the root kept open, and the directory of the file that was
        opened last: for many files in a row, by one thread. Raises the error of `gone` for a
        missing root.
        """
        root = self.open_root()
        held = ConfinedFolder(self._root, native=self._native, gone=self._gone, held=root)
        try:
            yield held
        finally:
            held._let_go()
            os.close(root)

    def open(self, parts: Sequence[str], flags: int) -> tuple[int, os.stat_result]:
        """Return a descriptor of the regular file, which the caller closes, and its metadata.
        Raises PathRefused for anything else.
        """
        fd = self._open(parts, flags | _FILE)
        try:
            found = os.fstat(fd)
            require_regular(found, parts)
        except BaseException:
            os.close(fd)
            raise
        return fd, found

    @contextmanager
    def opened(self, parts: Sequence[str], flags: int) -> Iterator[int]:
        """Yield a descriptor of the regular file. Raises PathRefused for anything else."""
        fd, _ = self.open(parts, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of the directory; with `make`, it and its missing parents are created
        (0700).
        """
        try:
            fd = self._open(parts, _DIRECTORY)
        except FileNotFoundError:
            if not make:
                raise
            fd = self._make(parts)
        try:
            yield fd
        finally:
            os.close(fd)

    def stat(self, parts: Sequence[str]) -> os.stat_result:
        """Return the metadata of whatever is at the path, without opening it for reading. Raises
        OSError (ELOOP) for a symbolic link.
        """
        fd = self.hold(parts)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def hold(self, parts: Sequence[str]) -> int:
        """Return a descriptor (O_PATH) of whatever is at the path, which cannot read it; the caller
        closes it. Raises OSError (ELOOP) for a symbolic link.
        """
        fd = self._open(parts, os.O_PATH)
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), "/".join(parts))
        return fd

    def open_root(self) -> int:
        """Return a descriptor of the root, which the caller closes. Raises the error of `gone` if
        it is missing.
        """
        try:
            return os.open(self._root, _DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            raise self._gone(self._root) from None

    def _open(self, parts: Sequence[str], flags: int) -> int:
        if self._held is not None and parts:
            return self._open_held(self._held, parts, flags)
        root = self.open_root()
        if not parts:
            return root
        try:
            return self._open_below(root, parts, flags)
        finally:
            os.close(root)

    def _open_held(self, root: int, parts: Sequence[str], flags: int) -> int:
        """Open a name in the directory of the last file without resolving the path again: a single
        name that is no link leads nowhere else.
        """
        *above, name = parts
        if not above or name in {"", ".", ".."}:
            return self._open_below(root, parts, flags)
        if self._last is None or self._last[0] != above:
            folder = self._open_below(root, above, _DIRECTORY)
            self._let_go()
            self._last = above, folder
        return os.open(name, flags | _SAFE, dir_fd=self._last[1])

    def _let_go(self) -> None:
        if self._last is not None:
            os.close(self._last[1])
            self._last = None

    def _open_below(self, root: int, parts: Sequence[str], flags: int) -> int:
        if self._native:
            fd = _openat2(root, "/".join(parts), flags | _SAFE)
            if fd is not None:
                return fd
        return _walk(root, parts, flags | _SAFE)

    def _make(self, parts: Sequence[str]) -> int:
        fd = self.open_root()
        for part in parts:
            try:
                child = _make_child(fd, part)
            finally:
                os.close(fd)
            fd = child
        return fd


def require_regular(found: os.stat_result, parts: Sequence[str], *, alone: bool = False) -> None:
    """Check for a regular file, with `alone` also for a single hard link. Raises PathRefused."""
    if not stat.S_ISREG(found.st_mode):
        path = "/".join(parts)
        raise PathRefused(f"{path} is no regular file", cure="name a text file of the workspace")
    if alone and found.st_nlink > 1:
        raise PathRefused(
            f"{'/'.join(parts)} has a second hard link, so a change would reach another place",
            cure="replace it by a copy of its own: cp FILE COPY && mv COPY FILE",
        )


def _openat2(root: int, path: str, flags: int) -> int | None:
    """Return a descriptor, or None where the system call is not available."""
    how = _OpenHow(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    name = os.fsencode(path)
    for _ in range(_ATTEMPTS):
        fd = _libc.syscall(_OPENAT2, root, name, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return int(fd)
        code = ctypes.get_errno()
        if code in {errno.EAGAIN, errno.EINTR}:
            continue
        # EPERM may come from a filter or from the file; opening part by part tells which.
        if code in {errno.ENOSYS, errno.EPERM}:
            return None
        raise OSError(code, os.strerror(code), path)
    return None


def _walk(root: int, parts: Sequence[str], flags: int) -> int:
    fd = os.dup(root)
    try:
        for part in parts[:-1]:
            child = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = child
        return os.open(parts[-1], flags, dir_fd=fd)
    finally:
        os.close(fd)


def _make_child(fd: int, part: str) -> int:
    try:
        os.mkdir(part, FOLDER_MODE, dir_fd=fd)
        made = True
    except FileExistsError:
        made = False
    child = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    if made:
        os.fchmod(child, FOLDER_MODE)
        os.fsync(fd)
    return child
