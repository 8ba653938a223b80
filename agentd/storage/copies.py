"""Finds copies of agentd's data that no erasure reaches: backups, files that a restore moved aside,
exports and snapshots.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agentd.core.erasure import Erasure

_GZIP = b"\x1f\x8b"
_FIRST = "state/state.db"  # the first entry of a backup's archive
_ASIDE = re.compile(r"\.(?:before|restore|corrupt|damaged)-")
_WORDLESS = re.compile(r"(?:beside\.json|\w+\.key)\.")  # they hold no words
# Suffixes of a database's files; the last one numbers its commits.
_BESIDE = ("", "-wal", "-shm", "-journal", "-acknowledged")
_LEAST = 1 << 11  # bytes; a backup is larger, since the database's schema alone packs to more
_PART = 1 << 18  # bytes of a file searched at once
_OVERLAP = 1 << 13  # bytes that two parts share, so that no expression is cut in two


class Copies:
    """The copies at or below `roots`, and the systemd journal if `journal` is the command that
    empties it. Files at or below `erased` do not count for their words: erasures reach them.

    `databases` are open in this process, so none of their files is read: closing any descriptor of
    one drops the locks that SQLite holds on it. The next process to open the database would then
    truncate the shared memory that this process has mapped, which kills it at once.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        databases: Sequence[Path],
        journal: str = "",
        erased: Sequence[Path] = (),
    ) -> None:
        # Strings, since a home has thousands of files and Path objects would dominate the cost.
        self._roots = tuple(map(os.fspath, roots))
        self._apart = tuple(
            path.with_name(path.name + end) for path in databases for end in _BESIDE
        )
        self._journal = journal
        self._erased = frozenset(map(os.fspath, erased))

    async def list(self, words: Erasure) -> tuple[str, ...]:
        """Return the paths of all backups and moved-aside files, whatever they contain, and of
        other files that contain the words, each once; last the journal as `journal (COMMAND)`.
        Unreadable files are left out.
        """
        found = await asyncio.to_thread(lambda: sorted(set(self._find(words))))
        journal = (f"journal ({self._journal})",) if self._journal else ()
        return (*found, *journal)

    def _find(self, words: Erasure) -> Iterator[str]:
        names = frozenset(path.name for path in self._apart)
        apart = frozenset(_inodes(self._apart))  # their files may have other names (hard links)
        folders = list(self._roots)
        while folders:
            folder = folders.pop()
            are_erased = self._are_erased(folder)
            for entry in _entries(folder):
                name, path = entry.name, f"{folder}/{entry.name}"
                is_aside = _ASIDE.search(name) is not None
                has_words = not name.endswith(("-wal", "-shm")) and not _WORDLESS.match(name)
                if is_aside and has_words:
                    yield path
                if _is_folder(entry):
                    if not is_aside:
                        folders.append(path)
                elif name not in names and (size := _size(entry, apart)) is not None:
                    is_erased = are_erased or path in self._erased
                    if is_erased and size < _LEAST:  # thousands of notes need not be opened
                        continue
                    if _is_copy(path, Erasure() if is_erased else words):
                        yield path

    def _are_erased(self, folder: str) -> bool:
        """Whether erasures reach the files in the folder."""
        return any(f"{folder}/".startswith(f"{one}/") for one in self._erased)


def _inodes(paths: Iterable[Path]) -> Iterator[tuple[int, int]]:
    for path in paths:
        with suppress(OSError):
            seen = path.stat()
            yield seen.st_dev, seen.st_ino


def _entries(folder: str) -> Sequence[os.DirEntry[str]]:
    """Return the entries of a folder; empty if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return tuple(entries)
    except OSError:
        return ()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _size(entry: os.DirEntry[str], apart: frozenset[tuple[int, int]]) -> int | None:
    """Return the bytes of a regular file, without opening it; None for others and those of
    `apart`.
    """
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    is_another = stat.S_ISREG(seen.st_mode) and (seen.st_dev, seen.st_ino) not in apart
    return seen.st_size if is_another else None


def _is_copy(path: str, words: Erasure) -> bool:
    try:
        return _holds(path, words) if not _is_packed(path) else _is_backup(path)
    except OSError:
        return False


def _is_packed(path: str) -> bool:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, len(_GZIP)) == _GZIP
    finally:
        os.close(fd)


def _is_backup(path: str) -> bool:
    try:
        with tarfile.open(path, "r|gz") as archive:
            first = archive.next()
        return first is not None and first.name == _FIRST
    except (tarfile.TarError, EOFError, zlib.error):
        return False


def _holds(path: str, words: Erasure) -> bool:
    if words == Erasure():
        return False
    with Path(path).open("rb") as file:
        tail = b""
        while part := file.read(_PART):
            if words.stands_in((tail + part).decode("utf-8", "replace")):
                return True
            tail = part[-_OVERLAP:]
    return False
