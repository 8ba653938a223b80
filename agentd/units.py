"""The service manager's units: which one runs a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CGROUP = Path("/proc/self/cgroup")


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


def _unit(path: Sequence[str]) -> Unit | None:
    name = next((part for part in reversed(path) if part.endswith(".service")), "")
    is_users = any(part.startswith("user@") and part != name for part in path)
    return Unit(name, is_users) if name else None
