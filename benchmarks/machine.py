"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path


def facts() -> str:
    """One line about the machine and how busy it was."""
    cpu = _field(Path("/proc/cpuinfo"), "model name") or platform.processor()
    memory = int(_field(Path("/proc/meminfo"), "MemTotal").split()[0]) / 1024**2
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} x {cpu}, {memory:.0f} GB, Linux {platform.release()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, load {load:.1f}"
    )


def _field(file: Path, name: str) -> str:
    lines = (line.partition(":") for line in file.read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")
