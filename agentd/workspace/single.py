"""Folders and files outside the workspace, which are only read."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agentd.core.errors import ScopeMissing
from agentd.workspace.folder import Folder, FolderEntry, Stamp


def outside(path: Path, setting: str) -> Folder:
    """The folder, or one with nothing but the file in it, which ends in `.md`; `setting` has named it.
    Where neither is there, every use of it raises ScopeMissing.
    """
    gone = partial(_gone, setting, path)
    if path.suffix.casefold() == ".md":
        return SingleFile(path, lambda _: gone())
    return Folder(path, gone=lambda _: gone())


class SingleFile(Folder):
    """The folder of one file, with nothing else in it. It is only read."""

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


def _gone(setting: str, path: Path) -> ScopeMissing:
    if path.exists():
        return ScopeMissing(
            f"{path} is neither a folder nor a file that ends in .md",
            cure=f"Name another file, or the folder it is in, in {setting}.",
        )
    return ScopeMissing(
        f"{path} is not there",
        cure=f"Mount it or put it there, or correct its line in {setting}.",
    )
