"""The service manager's units: where they are, and which one runs a process."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
