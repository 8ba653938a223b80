"""Checks of the systemd unit: what it starts, its stop timeout, lingering."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from agentd.core.health import Finding

_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "ms": 0.001}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


class UnitFileCheck(Struct, frozen=True):
    """Checks that the installed units name a command that exists, and allow the daemon more than
    `seconds`, its longest shutdown, to stop. `which` finds a command like `shutil.which`.
    """

    units: tuple[Path, ...]
    seconds: float
    which: Callable[[str], str | None] = shutil.which
    code: str = "unit"

    async def look(self) -> Finding:
        """Fail with the first problem of a unit."""
        there = [path for path in self.units if path.is_file()]
        for path in there:
            for problem in self._problems(path):
                cure = "`agentd service install` writes it anew; or correct it, then daemon-reload"
                return Finding.fail(self.code, f"{path}: {problem}", cure)
        names = ", ".join(str(path) for path in there)
        told = f"the service is {names}" if names else "agentd is not installed as a service"
        return Finding.ok(self.code, told)

    def _problems(self, path: Path) -> Iterator[str]:
        settings = dict(_settings(path.read_text(encoding="utf-8")))
        patience = _seconds(settings.get("TimeoutStopSec", "90"))
        if patience is not None and patience <= self.seconds:
            yield f"TimeoutStopSec={settings['TimeoutStopSec']} kills a daemon that ends well"
        argv = settings.get("ExecStart", "").split()
        command = next((part for part in argv if part != "/usr/bin/env"), "")
        if not command or self.which(command) is None:
            yield f"ExecStart names {command or 'nothing'}, which is not there"


class LingerCheck(Struct, frozen=True):
    """Checks that a user unit keeps running after logout: systemd then has the file `marker`."""

    unit: Path
    marker: Path
    code: str = "linger"

    async def look(self) -> Finding:
        """Warn if the user unit is installed and lingering is off."""
        if self.unit.is_file() and not self.marker.exists():
            text = "the daemon ends when you log out"
            return Finding.warn(self.code, text, "`loginctl enable-linger`")
        return Finding.ok(self.code, "logging out does not end the daemon")


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", ";")):
            yield name.strip(), value.strip()


def _seconds(text: str) -> float | None:
    """Return a systemd time span in seconds; None for no limit or an unknown format."""
    parts = _SPAN.findall(text.lower())
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts) or None
