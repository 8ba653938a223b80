"""Files of agentd's own in the workspace that only grow, and may be larger than notes."""

from __future__ import annotations

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
