"""Files that agentd itself keeps in the workspace; they may be larger than notes and have no
versions.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from weakref import finalize

from agentd.core.offloading import to_the_end
from agentd.workspace.changes import OWN_BYTES
from agentd.workspace.folder import Folder, append_durably
from agentd.workspace.os_errors import translate_os_errors
from agentd.workspace.versions import Versions


class LogFiles:
    """The files below `root`, by their paths in the workspace; only agentd writes them. `versions`
    records which of their lines are from outside. Methods raise WorkspaceError.
    """

    def __init__(self, root: Path, versions: Versions | None = None) -> None:
        self._folder = Folder(root)
        self._versions = versions
        self._made: dict[tuple[str, ...], _OpenLog] = {}

    async def read(self, path: str) -> bytes | None:
        """Return the whole file; None if there is none. Raises FileUnreadable for one larger than
        OWN_BYTES.
        """
        with translate_os_errors(path):
            return await to_the_end(
                partial(self._folder.read_for_change, path.split("/"), OWN_BYTES)
            )

    async def append(self, path: str, data: bytes) -> None:
        """Append the bytes to the file, durably; a crash may leave a part of them."""
        with translate_os_errors(path):
            await to_the_end(partial(self.append_now, tuple(path.split("/")), data))

    async def replace(self, path: str, data: bytes, outside: Collection[bytes] = ()) -> None:
        """Make `data` the whole file, durably and atomically. The lines `outside` are recorded as
        from outside before the file contains them.
        """
        with translate_os_errors(path):
            await to_the_end(partial(self._replace, path, data, outside))

    async def delete(self, path: str) -> None:
        """Delete the file durably, if it exists."""
        with translate_os_errors(path), suppress(FileNotFoundError):
            await to_the_end(partial(self._delete, path))

    async def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none if the folder does not exist."""
        with translate_os_errors(folder), suppress(FileNotFoundError):
            entries = await to_the_end(partial(self._folder.entries, folder.split("/")))
            return [one.name for one in entries if not (one.is_dir or one.is_odd)]
        return []

    def append_now(self, parts: tuple[str, ...], data: bytes) -> None:
        """Do what `append` does, blocking. The first append to a file copies it; later ones extend
        that copy, which is kept open, in place. Any other file found there is copied again, since
        it may be a link to another place. Raises OSError, too.
        """
        made = self._made.get(parts)
        if made is not None and self._folder.leads_to(parts, made.fd):
            append_durably(made.fd, data)
            return
        self._made[parts] = _OpenLog(self._copied(parts, data))

    def _replace(self, path: str, data: bytes, outside: Collection[bytes]) -> None:
        if self._versions is not None and outside:
            self._versions.add_outside_lines(path, outside)
        self._folder.replace(path.split("/"), data)
        if self._versions is not None:
            self._versions.set_outside_lines(path, outside)

    def _delete(self, path: str) -> None:
        self._folder.delete(path.split("/"))
        if self._versions is not None:
            self._versions.set_outside_lines(path, ())

    def _copied(self, parts: Sequence[str], data: bytes) -> int:
        old = self._folder.read_for_change(parts, OWN_BYTES) or b""
        return self._folder.replace_open(parts, old + data)


class _OpenLog:
    """A file made by agentd that is kept open, at its end, as long as this object exists."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        finalize(self, os.close, fd)
