"""Checks of the machine: permissions, disk space, clock, SQLite version, socket path, leftovers."""

from __future__ import annotations

import glob
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from msgspec import Struct

from agentd.core.health import Finding
from agentd.core.paths import DaemonPaths
from agentd.core.ports import Clock
from agentd.interfaces.commands.plain import counted

_FREE_BYTES = 100 * 1024 * 1024
_SUN_PATH = 107  # bytes of a path that fit `sockaddr_un.sun_path` before its NUL
_MOST_NAMED = 5
_STRAY_AGE = timedelta(minutes=5)
# SQLite's WAL-reset bug: two connections that reset the WAL at once can corrupt the database. Fixed
# after 3.51.2, and in the branches 3.44 and 3.50.
_FIRST_BAD, _LAST_BAD = (3, 7, 0), (3, 51, 2)
_CURED_IN = ((3, 44, 6), (3, 50, 7))


class PermissionsCheck(Struct, frozen=True):
    """Checks that only the owner can access agentd's files."""

    places: DaemonPaths
    workspace: Path
    code: str = "permissions"

    async def look(self) -> Finding:
        """Fail if a file belongs to another user, or its mode lets group or others in."""
        open_ = [path for path in self._paths() if _is_open(path)]
        if open_:
            names = [str(path) for path in open_[:_MOST_NAMED]]
            cure = shlex.join(["chmod", "go=", *names])
            if any(_is_foreign(path) for path in open_[:_MOST_NAMED]):
                cure = f"as root: {shlex.join(['chown', str(os.getuid()), *names])} && {cure}"
            told = f"others than the owner can reach {', '.join(names)}"
            return Finding.fail(self.code, told, cure)
        return Finding.ok(self.code, "only you can reach the files of agentd")

    def _paths(self) -> Iterator[Path]:
        state = self.places.state_dir
        yield from (self.places.config_file, self.workspace, self.places.socket, state)
        if self.places.config_file.parent == state.parent:  # one home for everything
            yield state.parent
        if state.is_dir():
            for folder, _, names in os.walk(state):
                if Path(folder) != state:
                    yield Path(folder)
                yield from (Path(folder, name) for name in names)


class DiskCheck(Struct, frozen=True):
    """Checks the free disk space of the folders. `free` returns the bytes available at a path."""

    folders: tuple[Path, ...]
    free: Callable[[Path], int]
    code: str = "disk_space"

    async def look(self) -> Finding:
        """Fail if less than 100 MiB are free for one of the folders."""
        folder, free = min(
            ((at, self.free(at)) for at in self._present()), key=lambda item: item[1]
        )
        text = f"{free // 1_000_000:,} MB are free at {folder}"
        if free < _FREE_BYTES:
            return Finding.fail(self.code, text, "make room on that disk; 100 MB should be free")
        return Finding.ok(self.code, text)

    def _present(self) -> Iterator[Path]:
        """Yield each folder, or its nearest existing parent if it does not exist yet."""
        for folder in self.folders:
            yield next(at for at in (folder, *folder.absolute().parents) if at.exists())


class ClockCheck(Struct, frozen=True):
    """Checks the year and the time zone. `zone` is the configured zone, `system` that of the
    machine; "" means not set.
    """

    clock: Clock
    zone: str
    system: str
    code: str = "clock"

    async def look(self) -> Finding:
        """Fail if the year is outside 2025…2099; warn if no zone is set, so UTC is assumed."""
        now = self.clock.now()
        if not 2025 <= now.year < 2100:
            cure = "set it, or `timedatectl set-ntp true`"
            return Finding.fail(self.code, f"the machine's clock says {now:%Y-%m-%d}", cure)
        zone = self.zone or self.system
        if not zone:
            text = "the machine names no time zone, so days are those of UTC"
            return Finding.warn(self.code, text, "set [agent] timezone")
        return Finding.ok(self.code, f"the clock says {now:%Y-%m-%d %H:%M} UTC, zone {zone}")


class SqliteVersionCheck(Struct, frozen=True):
    """Checks the SQLite version for the WAL-reset bug; it needs two connections, agentd has one."""

    version: tuple[int, ...]
    code: str = "sqlite"

    async def look(self) -> Finding:
        """Warn if the version has the bug."""
        name = ".".join(map(str, self.version))
        cured = any(self.version[:2] == v[:2] and self.version >= v for v in _CURED_IN)
        if _FIRST_BAD <= self.version <= _LAST_BAD and not cured:
            text = f"SQLite {name} can corrupt a database that two programs write at once"
            cure = "let no other program open state.db; use a Python with SQLite 3.51.3 or newer"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, f"SQLite {name} has no known fault that matters here")


class SocketPathCheck(Struct, frozen=True):
    """Checks that every client can connect to the socket by its path."""

    socket: Path
    code: str = "socket_path"

    async def look(self) -> Finding:
        """Warn if the path is too long for `sockaddr_un`, which most clients use."""
        length = len(os.fsencode(self.socket))
        if length > _SUN_PATH:
            text = (
                f"the socket's path has {length} bytes; other clients than "
                f"agentd's take {_SUN_PATH}"
            )
            return Finding.warn(self.code, text, "choose a shorter AGENTD_HOME or XDG_RUNTIME_DIR")
        return Finding.ok(self.code, f"the socket is {self.socket}")


class LeftoversCheck(Struct, frozen=True):
    """Looks for files that a crash left behind: corrupt index files that were put aside, temporary
    files, and database copies of unfinished backups.
    """

    state_dir: Path
    workspace: Path
    clock: Clock
    code: str = "leftovers"

    async def look(self) -> Finding:
        """Warn of such files; temporary ones count once they are five minutes old."""
        found = [
            *self.state_dir.glob("*.corrupt-*"),
            *(path for path in self._strays() if _is_old(path, self.clock)),
        ]
        if found:
            names = [str(path) for path in found[:_MOST_NAMED]]
            cure = f"nothing needs them: {shlex.join(['rm', '-r', *names])}"
            told = ", ".join(names)
            return Finding.warn(self.code, f"left behind ({len(found)}): {told}", cure)
        return Finding.ok(self.code, "no files of a crash are left")

    def _strays(self) -> Iterator[Path]:
        yield from self.state_dir.glob(".backup-*")
        for folder in (self.state_dir, self.workspace):
            yield from folder.rglob(".agentd-*.tmp")


class MovedAsideCheck(Struct, frozen=True):
    """Looks for what a restore, or the rescue of a database, moved aside before it put another in
    its place. No erasure reaches it.
    """

    places: DaemonPaths
    workspace: Path
    code: str = "moved_aside"

    async def look(self) -> Finding:
        """Warn of such files and folders, with the command that removes all of them."""
        found = sorted(
            {
                *self.places.state_dir.glob("*.before-*"),
                *_aside(self.places.config_file),
                *_aside(self.workspace),
            }
        )
        if found:
            text = (
                f"{counted(len(found), 'copy', 'copies')} of what stood here before a restore are"
                " kept with all that was said in them, and forgetting does not reach them"
            )
            names = " ".join(shlex.quote(str(path)) for path in found)
            return Finding.warn(self.code, text, f"if you do not want that back: rm -r {names}")
        return Finding.ok(self.code, "no copies of what a restore replaced are left")


def _aside(path: Path) -> Iterator[Path]:
    return path.parent.glob(f"{glob.escape(path.name)}.before-*")


class ErasureCheck(Struct, frozen=True):
    """Checks that deleted data is off the disk. While a database is rewritten to erase it, a marker
    file `*-unclean` exists next to it.
    """

    state_dir: Path
    clock: Clock
    code: str = "erasure"

    async def look(self) -> Finding:
        """Warn of markers older than five minutes: their rewriting was interrupted."""
        found = [path for path in self.state_dir.glob("*-unclean") if _is_old(path, self.clock)]
        if found:
            names = ", ".join(path.name.removesuffix("-unclean") for path in found)
            text = f"bytes of what was deleted may still stand in {names}: writing it anew was cut"
            cure = "make as much room on the disk as it takes, then `agentd restart` finishes that"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(
            self.code, "nothing that was deleted is left in the files of the databases"
        )


def _is_old(path: Path, clock: Clock) -> bool:
    """Whether the file is so old that no running operation can still use it."""
    try:
        written = path.stat().st_mtime
    except FileNotFoundError:
        return False
    return clock.now().timestamp() - written > _STRAY_AGE.total_seconds()


def _is_open(path: Path) -> bool:
    return _is_foreign(path) or any(status.st_mode & 0o077 for status in _file_or_folder(path))


def _is_foreign(path: Path) -> bool:
    return any(status.st_uid != os.getuid() for status in _file_or_folder(path))


def _file_or_folder(path: Path) -> Iterator[os.stat_result]:
    """Yield its status; nothing for a link, whose mode means nothing, or where it has gone."""
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not stat.S_ISLNK(status.st_mode):
            yield status
