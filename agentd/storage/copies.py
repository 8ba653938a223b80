"""Copies of what agentd keeps that nobody erases from: backups, and what a restore moved aside."""

from __future__ import annotations

import asyncio
import os
import stat
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_GZIP = b"\x1f\x8b"
_FIRST = "state/state.db"  # of a backup's entries
_ASIDE = (".before-", ".restore-", ".corrupt-")
_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite adds to the name of a database


class Copies:
    """Those at or below `roots`, and the journal if `journal` is the command that empties it.

    `databases` are open in this process. None of their files is looked into: closing any descriptor of
    one drops the locks that SQLite holds on it, and the next process to open the database would then
    cut the memory that is shared with it from under us, which kills at once.
    """

    def __init__(self, roots: Sequence[Path], databases: Sequence[Path], journal: str = "") -> None:
        self._roots = tuple(roots)
        self._apart = tuple(
            path.with_name(path.name + end) for path in databases for end in _BESIDE
        )
        self._journal = journal

    async def list(self) -> tuple[str, ...]:
        """Their paths, each once; the journal as `journal (COMMAND)`. What cannot be read is left out."""
        found = await asyncio.to_thread(lambda: sorted(set(self._find())))
        journal = (f"journal ({self._journal})",) if self._journal else ()
        return (*found, *journal)

    def _find(self) -> Iterator[str]:
        names = frozenset(path.name for path in self._apart)
        inodes = frozenset(_inodes(self._apart))  # they may have other names, too
        for root in self._roots:
            for folder, inner, files in os.walk(root):
                for name in (*inner, *files):
                    if any(mark in name for mark in _ASIDE) and not name.endswith(("-wal", "-shm")):
                        yield str(Path(folder, name))
                inner[:] = [name for name in inner if not any(mark in name for mark in _ASIDE)]
                paths = (Path(folder, name) for name in files if name not in names)
                yield from (str(path) for path in paths if _is_backup(path, inodes))


def _inodes(paths: Iterable[Path]) -> Iterator[tuple[int, int]]:
    for path in paths:
        with suppress(OSError):
            seen = path.stat()
            yield seen.st_dev, seen.st_ino


def _is_backup(path: Path, apart: frozenset[tuple[int, int]]) -> bool:
    try:
        seen = path.lstat()
        if not stat.S_ISREG(seen.st_mode) or (seen.st_dev, seen.st_ino) in apart:
            return False
        with path.open("rb") as file:
            if file.read(2) != _GZIP:
                return False
        with tarfile.open(path, "r|gz") as archive:
            first = archive.next()
        return first is not None and first.name == _FIRST
    except (OSError, tarfile.TarError, EOFError, zlib.error):
        return False
