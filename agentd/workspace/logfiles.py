"""Files of agentd's own in the workspace, which may be larger than notes and have no versions."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

from agentd.workspace.finishing import to_the_end
from agentd.workspace.folder import Folder
from agentd.workspace.refusals import translated

MOST_BYTES = 64 << 20


class LogFiles:
    """The files below `root`, by their paths in the workspace; nobody else writes them. Methods raise
    WorkspaceError.
    """

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)

    async def read(self, path: str) -> bytes | None:
        """The whole file; None if there is none. Raises FileUnreadable for one beyond MOST_BYTES."""
        with translated(path):
            return await to_the_end(
                partial(self._folder.read_for_change, path.split("/"), MOST_BYTES)
            )

    async def append(self, path: str, data: bytes) -> None:
        """Put the bytes behind the file's last, durably; a crash may leave a part of them."""
        with translated(path):
            await to_the_end(partial(self._folder.append, path.split("/"), data, 0))

    async def replace(self, path: str, data: bytes) -> None:
        """Make them the file, durably: whole, or not at all."""
        with translated(path):
            await to_the_end(partial(self._folder.replace, path.split("/"), data))

    async def delete(self, path: str) -> None:
        """Take the file away, durably, if it is there."""
        with translated(path), suppress(FileNotFoundError):
            await to_the_end(partial(self._folder.delete, path.split("/")))

    async def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; none if it is not there."""
        with translated(folder), suppress(FileNotFoundError):
            entries = await to_the_end(partial(self._folder.entries, folder.split("/")))
            return [one.name for one in entries if not (one.is_dir or one.is_odd)]
        return []
