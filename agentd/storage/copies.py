"""Copies of what agentd keeps that nobody erases from: backups, what a restore moved aside, exports and
snapshots.
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
_FIRST = "state/state.db"  # of a backup's entries
_ASIDE = re.compile(r"\.(?:before|restore|corrupt|damaged)-")
_WORDLESS = re.compile(r"(?:beside\.json|\w+\.key)\.")  # what was there once, and keys
_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite adds to the name of a database
_PART = 1 << 18  # bytes of a file that are looked at in one go
_OVERLAP = 1 << 13  # of two parts, so that no words are cut in two


class Copies:
    """Those at or below `roots`, and the journal if `journal` is the command that empties it. Files at or
    below `erased` are erased from, so that their words are no copies.

    `databases` are open in this process. None of their files is looked into: closing any descriptor of
    one drops the locks that SQLite holds on it, and the next process to open the database would then
    cut the memory that is shared with it from under us, which kills at once.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        databases: Sequence[Path],
        journal: str = "",
        erased: Sequence[Path] = (),
    ) -> None:
        # As plain text: a home has thousands of files, and paths that are objects cost most of the walk.
        self._roots = tuple(map(os.fspath, roots))
        self._apart = tuple(
            path.with_name(path.name + end) for path in databases for end in _BESIDE
        )
        self._journal = journal
        self._erased = frozenset(map(os.fspath, erased))

    async def list(self, words: Erasure) -> tuple[str, ...]:
        """The paths of backups and of what was moved aside, whatever it holds, and of other files with
        these words, each once; the journal as `journal (COMMAND)`. What cannot be read is left out.
        """
        found = await asyncio.to_thread(lambda: sorted(set(self._find(words))))
        journal = (f"journal ({self._journal})",) if self._journal else ()
        return (*found, *journal)

    def _find(self, words: Erasure) -> Iterator[str]:
        names = frozenset(path.name for path in self._apart)
        apart = frozenset(_inodes(self._apart))  # they may have other names, too
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
                elif name not in names and _is_another(entry, apart):
                    is_erased = are_erased or path in self._erased
                    if _is_copy(path, Erasure() if is_erased else words):
                        yield path

    def _are_erased(self, folder: str) -> bool:
        """Whether files in the folder are."""
        return any(f"{folder}/".startswith(f"{one}/") for one in self._erased)


def _inodes(paths: Iterable[Path]) -> Iterator[tuple[int, int]]:
    for path in paths:
        with suppress(OSError):
            seen = path.stat()
            yield seen.st_dev, seen.st_ino


def _entries(folder: str) -> Sequence[os.DirEntry[str]]:
    """What is in a folder; nothing in one that cannot be read."""
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


def _is_another(entry: os.DirEntry[str], apart: frozenset[tuple[int, int]]) -> bool:
    """Whether it is a regular file, and none of those apart; it is not opened for that."""
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(seen.st_mode) and (seen.st_dev, seen.st_ino) not in apart


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
