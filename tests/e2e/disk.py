"""What a disk holds after the power was cut, from the calls that a process has made
(`disk_calls.c`).

The model is that of POSIX, as far as a program may rely on it on any file system with a journal:

- Bytes and sizes of a file are durable once that file was synced. Until then each sector of each write, and each cut,
  may have reached the disk or not, in any order; the size may have grown before the bytes came, which then are zeros.
- Names (created, renamed, linked, removed) are durable once the folder was synced in which they stand. Until then any
  number of a folder's changes may have reached the disk, in their order; folders go independently of each other. A
  rename is one change, also from one folder to another. That a file was synced says nothing of its name.
- A sync that has returned is true. Modes are taken as they were last.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random

COMPILER = shutil.which("cc") or shutil.which("gcc")
_RECORDER = Path(__file__).with_name("disk_calls.c")
_BUILT = Path(__file__).parents[2] / "build"
_HEAD = struct.Struct("=cQQQHHI")
# of SQLite, written through a mapping, made anew by whoever is the first to open the database
_SHARED = "-shm"


class Unmodelled(Exception):
    """A call was made of which the model does not know what it does to a disk."""


@functools.cache
def recorder() -> Path:
    """The library that writes calls down, to be preloaded. It is built unless that was done before,
    in the checkout, for nobody may run what stands in some folders for temporary files.
    """
    assert COMPILER, "a C compiler is needed: cc or gcc"
    _BUILT.mkdir(parents=True, exist_ok=True)
    library = _BUILT / f"disk_calls-{sha256(_RECORDER.read_bytes()).hexdigest()[:16]}.so"
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        argv = [COMPILER, "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", str(_RECORDER)]
        subprocess.run([*argv, "-o", str(part)], check=True)
        part.rename(library)
    return library


def followed(root: Path, log: Path) -> dict[str, str]:
    """The variables by which a process with the recorder in it writes down what it does below
    `root`.
    """
    log.write_bytes(b"")
    return {"DISK_CALLS_ROOT": str(root), "DISK_CALLS_LOG": str(log)}


@dataclass(frozen=True, slots=True)
class Call:
    """One call that has succeeded. `kind` is the letter that the recorder gives it."""

    kind: str
    file: int = 0
    offset: int = 0
    size: int = 0
    path: str = ""
    other: str = ""
    data: bytes = b""


def calls_in(log: Path) -> Iterator[Call]:
    """The calls that were written down, in order; one that is cut off is left out."""
    with log.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            kind, number, offset, size, *lengths = _HEAD.unpack(head)
            path, other, data = (file.read(length) for length in lengths)
            if len(data) < lengths[-1]:
                return
            names = os.fsdecode(path), os.fsdecode(other)
            yield Call(kind.decode(), number, offset, size, *names, data)


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of that which was not synced: with which chance a part of the bytes, and a
    change of names, is kept.
    """

    bytes: float
    names: float
    sector: int = 512  # bytes that are kept together
    chance: Random = field(default_factory=Random)

    def keeps(self) -> bool:
        """Whether the next part of the bytes is kept."""
        return self.chance.random() < self.bytes

    def keeps_name(self) -> bool:
        """Whether the next change of names is."""
        return self.chance.random() < self.names


ALL, NOTHING = Fate(1.0, 1.0), Fate(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes that were written there or, without any, a size that was set."""

    offset: int
    data: bytes = b""

    def reach(self, content: bytearray, fate: Fate) -> None:
        """Let as much of it come into the content as the fate keeps."""
        if not self.data and fate.keeps():
            resize(content, self.offset)
        start, end = self.offset, self.offset + len(self.data)
        while start < end:
            stop = min(end, (start // fate.sector + 1) * fate.sector)
            if fate.keeps():
                resize(content, max(len(content), start))
                content[start:stop] = self.data[start - self.offset : stop - self.offset]
            start = stop


def resize(content: bytearray, size: int) -> None:
    """Cut it, or fill it with zeros."""
    del content[size:]
    content.extend(bytes(size - len(content)))


@dataclass(eq=False, slots=True)
class File:
    """A file or folder, whatever its names."""

    mode: int
    is_folder: bool = False
    synced: bytearray = field(default_factory=bytearray)
    unsynced: list[Change] = field(default_factory=list)
    names: dict[str, File] = field(default_factory=dict)  # as processes see them
    kept: dict[str, File] = field(default_factory=dict)  # as they are on the disk for sure

    def sync(self) -> None:
        """Let all bytes be durable."""
        for change in self.unsynced:
            change.reach(self.synced, _WHOLE)
        self.unsynced.clear()

    def content(self, fate: Fate) -> bytearray:
        """What is found on the disk."""
        found = bytearray(self.synced)
        for change in self.unsynced:
            change.reach(found, fate)
        sizes = [change.offset + len(change.data) for change in self.unsynced]
        if sizes and fate.keeps():
            resize(found, max(len(found), sizes[-1]))
        return found


_WHOLE = Fate(1.0, 1.0, sector=1 << 40)


@dataclass(frozen=True, slots=True)
class Renaming:
    """One change of names: some are gone, some are new."""

    gone: tuple[tuple[File, str], ...] = ()
    new: tuple[tuple[File, str, File], ...] = ()

    def folders(self) -> set[File]:
        return {folder for folder, *_ in (*self.gone, *self.new)}

    def apply(self, table: Callable[[File], dict[str, File]]) -> None:
        for folder, name in self.gone:
            table(folder).pop(name, None)
        for folder, name, file in self.new:
            table(folder)[name] = file


class Disk:
    """The disk below a folder, all of which is durable as it stands there now."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[int, File] = {}
        self._top = self._found(root)
        self._renamings: list[Renaming] = []  # that are not durable

    def follow(self, call: Call, *, syncs: Callable[[str], bool] = lambda _: True) -> None:
        """Take over what a call has done. `syncs` tells of which paths the disk does not forget
        syncs. Raises Unmodelled.
        """
        match call.kind:
            case "S":  # words to a client
                return
            case "W":
                self._file(call).unsynced.append(Change(call.offset, call.data))
            case "T":
                self._file(call).unsynced.append(Change(call.size))
            case "F" if syncs(call.path):
                file = self._file(call)
                file.sync()
                self._sync_names(file)
            case "F":
                return
            case "P" if call.file in self._files:  # or it is a socket
                self._files[call.file].mode = call.offset
            case "P":
                return
            case "C" | "K":
                file = File(call.offset, is_folder=call.kind == "K")
                self._files[call.file] = file
                self._rename(Renaming(new=((*self._place(call.path), file),)))
            case "L":
                self._rename(Renaming(new=((*self._place(call.path), self._file(call)),)))
            case "D":
                self._rename(Renaming(gone=(self._place(call.path),)))
            case "R":
                folder, name = self._place(call.path)
                if name not in folder.names:
                    raise Unmodelled(call)
                renaming = (*self._place(call.other), folder.names[name])
                self._rename(Renaming(gone=((folder, name),), new=(renaming,)))
            case "M" if call.path.endswith(_SHARED):
                return
            case _:
                raise Unmodelled(call)

    def write(self, target: Path, fate: Fate) -> None:
        """Make in an empty folder what is found when the power is back."""
        tables: dict[File, dict[str, File]] = {}

        def table(folder: File) -> dict[str, File]:
            return tables.setdefault(folder, dict(folder.kept))

        over: set[File] = set()  # folders of which a change was lost, and all after it
        for renaming in self._renamings:
            if renaming.folders().isdisjoint(over) and fate.keeps_name():
                renaming.apply(table)
            else:
                over |= renaming.folders()
        written: dict[File, Path] = {}
        folders = [(self._top, target)]
        for folder, place in folders:
            place.mkdir(mode=0o700, exist_ok=True)
            place.chmod(folder.mode)
            for name, file in table(folder).items():
                path = place / name
                if file.is_folder:
                    folders.append((file, path))
                elif file in written:
                    path.hardlink_to(written[file])
                else:
                    path.write_bytes(file.content(fate))
                    path.chmod(file.mode)
                    written[file] = path

    def differences(self) -> list[str]:
        """What of the folder, as processes see it, is not what follows from the calls: nothing if
        all calls were seen.
        """
        found: list[str] = []
        folders = [(self._top, self._root)]
        for folder, place in folders:
            there = {entry.name: entry for entry in os.scandir(place) if not _is_socket(entry)}
            found += [str(place / name) for name in there.keys() ^ folder.names.keys()]
            for name in there.keys() & folder.names.keys():
                file, path = folder.names[name], place / name
                if file.is_folder:
                    folders.append((file, path))
                elif not name.endswith(_SHARED) and path.read_bytes() != file.content(_WHOLE):
                    found.append(str(path))
        return found

    def _found(self, path: Path) -> File:
        info = path.lstat()
        file = File(stat.S_IMODE(info.st_mode), stat.S_ISDIR(info.st_mode))
        if info.st_nlink > 1 and not file.is_folder:
            file = self._files.setdefault(info.st_ino, file)
        self._files[info.st_ino] = file
        if file.is_folder:
            entries = [entry for entry in os.scandir(path) if not _is_socket(entry)]
            file.names = {entry.name: self._found(path / entry.name) for entry in entries}
            file.kept = dict(file.names)
        else:
            file.synced = bytearray(path.read_bytes())
        return file

    def _file(self, call: Call) -> File:
        if call.file not in self._files:
            raise Unmodelled(call)
        return self._files[call.file]

    def _place(self, path: str) -> tuple[File, str]:
        *parts, name = Path(path).relative_to(self._root).parts
        folder = self._top
        for part in parts:
            folder = folder.names[part]
        return folder, name

    def _rename(self, renaming: Renaming) -> None:
        renaming.apply(lambda folder: folder.names)
        self._renamings.append(renaming)

    def _sync_names(self, folder: File) -> None:
        """Let the names in a folder be durable, and what had to be done before in others."""
        folders, done = {folder}, []
        for renaming in reversed(self._renamings):
            if not renaming.folders().isdisjoint(folders):
                folders |= renaming.folders()
                done.append(renaming)
        for renaming in reversed(done):
            renaming.apply(lambda folder: folder.kept)
            self._renamings.remove(renaming)


def _is_socket(entry: os.DirEntry[str]) -> bool:
    return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
