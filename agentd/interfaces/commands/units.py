"""systemd units: the paths of agentd's unit files, and the unit in which a process runs."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

CGROUP = Path("/proc/self/cgroup")
_SYSTEM = Path("/etc/systemd/system")
_LINGER = Path("/var/lib/systemd/linger")


class Unit(Struct, frozen=True):
    """A service unit, of the user's manager (`is_users`) or of the system's."""

    name: str
    is_users: bool

    def journal(self, *options: str) -> list[str]:
        """Return the command that prints the unit's log, one record a line."""
        scope = "--user-unit" if self.is_users else "--unit"
        return ["journalctl", "--output=cat", "--no-pager", f"{scope}={self.name}", *options]


def unit_of(cgroup: Path = CGROUP) -> Unit | None:
    """Return the unit of the process whose cgroup file is given; None if it runs in no unit."""
    try:
        lines = cgroup.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next(
        (unit for line in lines if (unit := _unit(line.rpartition(":")[2].split("/")))), None
    )


def users_unit(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's own unit file."""
    base = environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if base.startswith("/") else Path("~/.config").expanduser()
    return config / "systemd" / "user" / "agentd.service"


def system_unit() -> Path:
    """Return the path of the system-wide unit template."""
    return _SYSTEM / "agentd@.service"


def linger_marker() -> Path:
    """Return the path of the file that exists if this user's services keep running after logout."""
    return _LINGER / pwd.getpwuid(os.getuid()).pw_name


def _unit(path: Sequence[str]) -> Unit | None:
    name = next((part for part in reversed(path) if part.endswith(".service")), "")
    is_users = any(part.startswith("user@") and part != name for part in path)
    return Unit(name, is_users) if name else None
