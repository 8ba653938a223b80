"""What the daemon gives up at its start, on top of what a service manager takes from it: no image of
its memory on the disk or for others of its user, no way to more rights, no keys in its environment.
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
_ENVIRONMENT = (47, 48)  # where it begins and ends, in /proc/self/stat behind the name


def confine() -> None:
    """No core dump, no debugger or reader of memory but root, no set-user-id program: for this process,
    and the first and last for its children. Raises OSError where the system refuses.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        _prctl(_SET_DUMPABLE, 0)
        _prctl(_SET_NO_NEW_PRIVS, 1)


def without_keys(
    environ: MutableMapping[str, str], names: Iterable[str]
) -> MutableMapping[str, str]:
    """The environment, in which these variables can be read though `environ` has them no more: no child
    inherits them. What the kernel shows of them in /proc/PID/environ is overwritten, too, if `environ`
    is the process's own.
    """
    keys = {name: environ[name] for name in names if name in environ}
    for name in keys:
        del environ[name]
    if environ is os.environ and sys.platform == "linux":
        _overwrite(keys)
    return ChainMap(environ, keys)  # what is set or taken out later is so in `environ`


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"prctl({option})")


def _overwrite(keys: Mapping[str, str]) -> None:
    """Zeros for the values where the kernel laid them down when the process began."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    first, last = (int(fields[place]) for place in _ENVIRONMENT)
    block = ctypes.string_at(first, last - first) if last > first else b""
    at = 0
    for entry in block.split(b"\0"):
        name, is_set, value = entry.partition(b"=")
        if is_set and os.fsdecode(name) in keys:
            ctypes.memset(first + at + len(name) + 1, 0, len(value))
        at += len(entry) + 1
