"""Checks of the service manager's unit."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentd.core.health import Finding

_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "ms": 0.001}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


@dataclass(frozen=True, slots=True)
class UnitFileCheck:
    """Whether the installed units start what is there, and let it end: `seconds` is the longest that
    the daemon takes to stop.
    """

    units: tuple[Path, ...]
    seconds: float
    which: Callable[[str], str | None] = shutil.which
    code: str = "unit"

    async def look(self) -> Finding:
        """Fails for the first that does not."""
        there = [path for path in self.units if path.is_file()]
        for path in there:
            for problem in self._problems(path):
                cure = "`agentd service install` writes it anew; or correct it, then daemon-reload"
                return Finding.fail(self.code, f"{path}: {problem}", cure)
        names = ", ".join(str(path) for path in there)
        return Finding.ok(self.code, names or "agentd is not installed as a service")

    def _problems(self, path: Path) -> Iterator[str]:
        settings = dict(_settings(path.read_text(encoding="utf-8")))
        patience = _seconds(settings.get("TimeoutStopSec", "90"))
        if patience is not None and patience <= self.seconds:
            yield f"TimeoutStopSec={settings['TimeoutStopSec']} kills a daemon that ends well"
        argv = settings.get("ExecStart", "").split()
        command = next((part for part in argv if part != "/usr/bin/env"), "")
        if not command or self.which(command) is None:
            yield f"ExecStart names {command or 'nothing'}, which is not there"


@dataclass(frozen=True, slots=True)
class LingerCheck:
    """Whether a user's own unit goes on when the user logs out. `marker` exists if so."""

    unit: Path
    marker: Path
    code: str = "linger"

    async def look(self) -> Finding:
        """Warns of a unit that ends with the last session."""
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
    """A time span as systemd reads it; None is for ever."""
    parts = _SPAN.findall(text.lower())
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts) or None
