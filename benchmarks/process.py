"""What the kernel knows about a process."""

from __future__ import annotations

import time
from pathlib import Path

_CPUCLOCK_SCHED = 2


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process, ended ones too, to the nanosecond."""
    return time.clock_gettime(((~pid) << 3) | _CPUCLOCK_SCHED)


def tree(pid: int) -> list[int]:
    """The process and all that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += tree(int(child))
    return found


def memory_mb(pid: int, *, alone: bool = False) -> tuple[float, str]:
    """Memory of the tree, or of the process alone, and what kind of figure it is: PSS, or RSS where
    that cannot be read.
    """
    processes = [pid] if alone else tree(pid)
    try:
        return sum(_kilobytes(p, "smaps_rollup", "Pss:") for p in processes) / 1024, "PSS"
    except OSError:
        return sum(_kilobytes(p, "status", "VmRSS:") for p in processes) / 1024, "RSS"


def written_bytes(pid: int) -> int:
    """Bytes that the process has caused to be sent to the disk. PermissionError unless root
    asks.
    """
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))


def _kilobytes(pid: int, file: str, name: str) -> int:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
