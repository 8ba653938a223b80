"""A file outside the workspace, as if it were the only one in its folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from agentd.workspace.folder import Entry, Folder, Stamp


class SingleFile(Folder):
    """The folder of one file, with nothing else in it. It is only read."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.parent)
        self._name = file.name

    def stamp(self, parts: Sequence[str]) -> Stamp:
        """See Folder."""
        return super().stamp(self._checked(parts))

    def read(self, parts: Sequence[str], limit: int) -> bytes:
        """See Folder."""
        return super().read(self._checked(parts), limit)

    def entries(self, parts: Sequence[str]) -> list[Entry]:
        """See Folder."""
        return [entry for entry in super().entries(parts) if entry.name == self._name and not parts]

    def _checked(self, parts: Sequence[str]) -> Sequence[str]:
        if tuple(parts) != (self._name,):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return parts
