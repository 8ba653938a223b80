"""`_agentd/backup`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentd.errors import InvalidRequest
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler


class BackupParams(Params):
    """Where the archive goes, an absolute path."""

    file: str


class BackupMethods:
    """Backups, made by the one process that may touch the databases."""

    def __init__(self, write: Callable[[Path], Awaitable[dict[str, Any]]]) -> None:
        self._write = write

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"_agentd/backup": handler(BackupParams, self._run)}

    async def _run(self, params: BackupParams) -> dict[str, Any]:
        file = Path(params.file)
        if not file.is_absolute():
            raise InvalidRequest("file: is no absolute path", cure="name it from / on")
        return await self._write(file)
