"""`doctor`, `reload` and `backup`: maintenance of the daemon itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.errors import InvalidRequest
from agentd.core.paths import expanded
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Group, Param
from agentd.interfaces.commands.plain import counted, fields

if TYPE_CHECKING:
    from agentd.core.health import Finding

UPKEEP = Group("")


class ReloadResult(Protocol):
    """The outcome of a reload."""

    def as_json(self) -> dict[str, Any]:
        """Return `{changed, needs_restart, missing}`."""


def _reload_text(result: dict[str, Any]) -> str:
    lines = []
    if missing := result.get("missing"):
        lines.append(f"{missing} does not exist: agentd's defaults hold")
    if result["changed"]:
        lines.append(f"changed: {', '.join(result['changed'])}")
    if result["needs_restart"]:
        lines.append(f"needs `agentd restart`: {', '.join(result['needs_restart'])}")
    return "\n".join(lines) or "nothing has changed"


def _backup_text(result: dict[str, Any]) -> str:
    files, size = counted(result["files"], "file"), counted(result["bytes"], "byte")
    return "\n".join([f"{files} in {result['file']}, {size}, checked", *link_lines(result)])


def link_lines(result: dict[str, Any]) -> tuple[str, ...]:
    """Return a line on the links that are left out of a copy of the workspace; none if there are no
    such links.
    """
    if not (count := result.get("links", 0)):
        return ()
    more = ", …" if count > len(result["left_out"]) else ""
    names = f"{', '.join(result['left_out'])}{more}"
    cure = (
        "what they lead to is not in it, and agentd does not read it: put the "
        "files themselves there"
    )
    return (f"without {counted(count, 'link')} ({names}): {cure}",)


class UpkeepCommands:
    """Checks, configuration reloads and backups, which only the daemon can do: no other process may
    touch its databases.
    """

    def __init__(
        self,
        examine: Callable[[], Awaitable[Sequence[Finding]]],
        take: Callable[[], Awaitable[ReloadResult]],
        write: Callable[[Path], Awaitable[dict[str, Any]]],
    ) -> None:
        """`examine` runs the daemon's own checks, `take` reloads the configuration, `write` writes
        the archive to an absolute path.
        """
        self._examine = examine
        self._take = take
        self._write = write

    @UPKEEP.command(fields)
    async def doctor(self) -> dict[str, Any]:
        """Check everything that can be wrong; exit code 1 if something does not work."""
        return {"checks": [finding.as_json() for finding in await self._examine()]}

    @UPKEEP.command(_reload_text)
    async def reload(self) -> dict[str, Any]:
        """Let the daemon read its configuration again; says what needs a restart."""
        return (await self._take()).as_json()

    @UPKEEP.command(_backup_text, seconds=MODEL_SECONDS)
    async def backup(
        self, file: Annotated[str, Param("The archive, a .tar.gz.", metavar="FILE")]
    ) -> dict[str, Any]:
        """Write everything into one file while the daemon runs, and check it."""
        if not Path(file).is_absolute():
            raise InvalidRequest("file: is no absolute path", cure="name it from / on")
        return await self._write(expanded(file))
