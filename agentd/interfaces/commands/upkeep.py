"""`doctor`, `reload` and `backup`: what looks after the daemon itself."""

from __future__ import annotations

import os
import pwd
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.errors import InvalidRequest
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Group, Param
from agentd.interfaces.commands.plain import counted, fields

if TYPE_CHECKING:
    from agentd.core.health import Finding


# The service manager's units: where they are, and which one runs a process.

CGROUP = Path("/proc/self/cgroup")
_SYSTEM = Path("/etc/systemd/system")
_LINGER = Path("/var/lib/systemd/linger")


@dataclass(frozen=True, slots=True)
class Unit:
    """A service unit, of the user's own manager or of the system's."""

    name: str
    is_users: bool

    def journal(self, *options: str) -> list[str]:
        """The command that prints what the unit logged, one record a line."""
        scope = "--user-unit" if self.is_users else "--unit"
        return ["journalctl", "--output=cat", "--no-pager", f"{scope}={self.name}", *options]


def unit_of(cgroup: Path = CGROUP) -> Unit | None:
    """The unit that a process runs in, told by its control group; None outside of any."""
    try:
        lines = cgroup.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next(
        (unit for line in lines if (unit := _unit(line.rpartition(":")[2].split("/")))), None
    )


def users_unit(environ: Mapping[str, str]) -> Path:
    """Where the user's own unit file belongs."""
    base = environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if base.startswith("/") else Path("~/.config").expanduser()
    return config / "systemd" / "user" / "agentd.service"


def system_unit() -> Path:
    """Where the unit file for every user of the machine belongs."""
    return _SYSTEM / "agentd@.service"


def linger_marker() -> Path:
    """The file that exists if this user's services go on after logging out."""
    return _LINGER / pwd.getpwuid(os.getuid()).pw_name


def _unit(path: Sequence[str]) -> Unit | None:
    name = next((part for part in reversed(path) if part.endswith(".service")), "")
    is_users = any(part.startswith("user@") and part != name for part in path)
    return Unit(name, is_users) if name else None


UPKEEP = Group("")


class ReloadResult(Protocol):
    """What a reload came to."""

    def as_json(self) -> dict[str, Any]:
        """`{changed, needs_restart, missing}`."""


def _reloaded(result: dict[str, Any]) -> str:
    lines = []
    if missing := result.get("missing"):
        lines.append(f"{missing} does not exist: agentd's defaults hold")
    if result["changed"]:
        lines.append(f"changed: {', '.join(result['changed'])}")
    if result["needs_restart"]:
        lines.append(f"needs `agentd restart`: {', '.join(result['needs_restart'])}")
    return "\n".join(lines) or "nothing has changed"


def _written(result: dict[str, Any]) -> str:
    files, size = counted(result["files"], "file"), counted(result["bytes"], "byte")
    return f"{files} in {result['file']}, {size}, checked"


class UpkeepCommands:
    """The daemon's own checks, its configuration, and copies of what it holds: it is the one process that
    may touch the databases.
    """

    def __init__(
        self,
        examine: Callable[[], Awaitable[Sequence[Finding]]],
        take: Callable[[], Awaitable[ReloadResult]],
        write: Callable[[Path], Awaitable[dict[str, Any]]],
    ) -> None:
        """`examine` makes the checks that only the daemon can make, `take` takes a changed configuration
        into use, `write` makes the archive at an absolute path.
        """
        self._examine = examine
        self._take = take
        self._write = write

    @UPKEEP.command(fields)
    async def doctor(self) -> dict[str, Any]:
        """Check everything that can be wrong; exit code 1 if something does not work."""
        return {"checks": [finding.as_json() for finding in await self._examine()]}

    @UPKEEP.command(_reloaded)
    async def reload(self) -> dict[str, Any]:
        """Let the daemon read its configuration again; says what needs a restart."""
        return (await self._take()).as_json()

    @UPKEEP.command(_written, seconds=MODEL_SECONDS)
    async def backup(
        self, file: Annotated[str, Param("The archive, a .tar.gz.", metavar="FILE")]
    ) -> dict[str, Any]:
        """Write everything into one file while the daemon runs, and check it."""
        path = Path(file)
        if not path.is_absolute():
            raise InvalidRequest("file: is no absolute path", cure="name it from / on")
        return await self._write(path)
