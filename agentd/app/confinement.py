"""Gives up rights of the process at its start, beyond what a service manager takes away: no core
dump, no memory that other processes of its user can read, no new privileges, no keys in its
environment.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

_SET_DUMPABLE, _SET_NO_NEW_PRIVS = 4, 38  # of prctl(2)
_ENVIRONMENT = (47, 48)  # fields env_start and env_end of /proc/self/stat, counted after the name


def confine() -> None:
    """Forbid core dumps, reading of the process's memory by anyone but root, and set-user-id
    programs. Children inherit the first and the last. Raises OSError if the system refuses.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        _prctl(_SET_DUMPABLE, 0)
        _prctl(_SET_NO_NEW_PRIVS, 1)


def without_keys(
    environ: MutableMapping[str, str], names: Iterable[str]
) -> MutableMapping[str, str]:
    """Remove the variables `names` from `environ`, so that no child inherits them, and return a
    mapping that still has them. If `environ` is the process's own, their values in
    /proc/PID/environ are overwritten, too.
    """
    keys = {name: environ[name] for name in names if name in environ}
    for name in keys:
        del environ[name]
    if environ is os.environ and sys.platform == "linux":
        _overwrite(keys)
    return ChainMap(environ, keys)  # later changes go to `environ`


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"prctl({option})")


def _overwrite(keys: Mapping[str, str]) -> None:
    """Overwrite the values with zeros where the kernel placed them when the process began."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    first, last = (int(fields[place]) for place in _ENVIRONMENT)
    block = ctypes.string_at(first, last - first) if last > first else b""
    at = 0
    for entry in block.split(b"\0"):
        name, is_set, value = entry.partition(b"=")
        if is_set and os.fsdecode(name) in keys:
            ctypes.memset(first + at + len(name) + 1, 0, len(value))
        at += len(entry) + 1
