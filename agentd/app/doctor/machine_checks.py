"""Checks of what is around the daemon: files and their modes, disk, clock, SQLite, the socket."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from agentd.core.health import Finding
from agentd.core.paths import Places
from agentd.core.ports import Clock

_FREE_BYTES = 100 * 1024 * 1024
_SUN_PATH = 107
_MOST_NAMED = 5
_STRAY_AGE = timedelta(minutes=5)
# The bug that can corrupt a WAL which two connections reset at once; 3.44 and 3.50 got the cure too.
_FIRST_BAD, _LAST_BAD = (3, 7, 0), (3, 51, 2)
_CURED_IN = ((3, 44, 6), (3, 50, 7))


@dataclass(frozen=True, slots=True)
class PermissionsCheck:
    """Whether only the owner can reach agentd's files."""

    places: Places
    workspace: Path
    code: str = "permissions"

    async def look(self) -> Finding:
        """Fails when others could read or change them."""
        open_ = [path for path in self._paths() if _is_open(path)]
        if open_:
            names = ", ".join(str(path) for path in open_[:_MOST_NAMED])
            cure = f"chmod go= {' '.join(str(path) for path in open_[:_MOST_NAMED])}"
            return Finding.fail(self.code, f"others than the owner can reach {names}", cure)
        return Finding.ok(self.code, "only the owner can reach the files")

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


@dataclass(frozen=True, slots=True)
class DiskCheck:
    """Whether there is room to store anything. `free` tells the bytes left at a path."""

    folders: tuple[Path, ...]
    free: Callable[[Path], int]
    code: str = "disk_space"

    async def look(self) -> Finding:
        """Fails below 100 MB."""
        folder, free = min(
            ((at, self.free(at)) for at in self._present()), key=lambda item: item[1]
        )
        text = f"{free // 1_000_000:,} MB are free at {folder}"
        if free < _FREE_BYTES:
            return Finding.fail(self.code, text, "make room on that disk; 100 MB should be free")
        return Finding.ok(self.code, text)

    def _present(self) -> Iterator[Path]:
        """The folders; for one that is not there yet, the one in which it would be made."""
        for folder in self.folders:
            yield next(at for at in (folder, *folder.absolute().parents) if at.exists())


@dataclass(frozen=True, slots=True)
class ClockCheck:
    """Whether the clock can be believed. `zone` is the one configured, `system` the machine's or
    "" where that is not known.
    """

    clock: Clock
    zone: str
    system: str
    code: str = "clock"

    async def look(self) -> Finding:
        """Fails in a year that cannot be, warns of a zone that is only assumed."""
        now = self.clock.now()
        if not 2025 <= now.year < 2100:
            cure = "set it, or `timedatectl set-ntp true`"
            return Finding.fail(self.code, f"the machine's clock says {now:%Y-%m-%d}", cure)
        zone = self.zone or self.system
        if not zone:
            text = "the machine names no time zone, so days are those of UTC"
            return Finding.warn(self.code, text, "set [agent] timezone")
        return Finding.ok(self.code, f"{now:%Y-%m-%d %H:%M} UTC, zone {zone}")


@dataclass(frozen=True, slots=True)
class SqliteVersionCheck:
    """Whether this SQLite can corrupt a database that two connections use. agentd uses one."""

    version: tuple[int, ...]
    code: str = "sqlite"

    async def look(self) -> Finding:
        """Warns of a bad version."""
        name = ".".join(map(str, self.version))
        cured = any(self.version[:2] == v[:2] and self.version >= v for v in _CURED_IN)
        if _FIRST_BAD <= self.version <= _LAST_BAD and not cured:
            text = f"SQLite {name} can corrupt a database that two programs write at once"
            cure = "let no other program open state.db; use a Python with SQLite 3.51.3 or newer"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, f"SQLite {name}")


@dataclass(frozen=True, slots=True)
class SocketPathCheck:
    """Whether every client can reach the socket."""

    socket: Path
    code: str = "socket_path"

    async def look(self) -> Finding:
        """Warns of a path that is too long for most of them."""
        length = len(os.fsencode(self.socket))
        if length > _SUN_PATH:
            text = f"the socket's path has {length} bytes; other clients than agentd's take {_SUN_PATH}"
            return Finding.warn(self.code, text, "choose a shorter AGENTD_HOME or XDG_RUNTIME_DIR")
        return Finding.ok(self.code, f"the socket is {self.socket}")


@dataclass(frozen=True, slots=True)
class LeftoversCheck:
    """What an accident left behind: index files that were put aside, temporary files, a copy of the
    conversations that was on its way into a backup.
    """

    state_dir: Path
    workspace: Path
    clock: Clock
    code: str = "leftovers"

    async def look(self) -> Finding:
        """Warns of them."""
        found = [
            *self.state_dir.glob("*.corrupt-*"),
            *(path for path in self._strays() if _is_old(path, self.clock)),
        ]
        if found:
            names = " ".join(str(path) for path in found[:_MOST_NAMED])
            text = f"{len(found)} files were left behind: {names}"
            return Finding.warn(self.code, text, f"nothing needs them: rm -r {names}")
        return Finding.ok(self.code, "nothing was left behind")

    def _strays(self) -> Iterator[Path]:
        yield from self.state_dir.glob(".backup-*")
        for folder in (self.state_dir, self.workspace):
            yield from folder.rglob(".agentd-*.tmp")


@dataclass(frozen=True, slots=True)
class ErasureCheck:
    """Whether what was deleted is off the disk. A marker beside a database says that it is not."""

    state_dir: Path
    clock: Clock
    code: str = "erasure"

    async def look(self) -> Finding:
        """Warns of markers that are older than a deletion takes."""
        found = [path for path in self.state_dir.glob("*-unclean") if _is_old(path, self.clock)]
        if found:
            names = ", ".join(path.name.removesuffix("-unclean") for path in found)
            text = f"bytes of what was deleted may still stand in {names}: writing it anew was cut"
            cure = "make as much room on the disk as it takes, then `agentd restart` finishes that"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, "what was deleted has left no byte")


def _is_old(path: Path, clock: Clock) -> bool:
    """Whether nobody can be at work on the file any more."""
    try:
        written = path.stat().st_mtime
    except FileNotFoundError:
        return False
    return clock.now().timestamp() - written > _STRAY_AGE.total_seconds()


def _is_open(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    is_foreign = status.st_uid != os.getuid()
    return not stat.S_ISLNK(status.st_mode) and (is_foreign or bool(status.st_mode & 0o077))
