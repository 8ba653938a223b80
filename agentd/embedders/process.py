"""What makes a process an embedder: its name, its limits, its end with the daemon."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

TITLE = "agentd-embedder"

_SET_DEATH_SIGNAL, _SET_NAME = 1, 15  # of prctl(2)
_ARGUMENTS = slice(
    45, 47
)  # in /proc/self/stat behind the name: where the command line begins and ends


def settle(parent: int) -> None:
    """Take the title, and die when the parent does. Raises SystemExit if it is dead already."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_NAME, ctypes.c_char_p(TITLE.encode()), 0, 0, 0)
    libc.prctl(_SET_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(1)
    with suppress(OSError, ValueError, IndexError):
        _rename_command_line()
    with suppress(OSError):  # when memory runs out, this goes and not the daemon
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def limit_memory(megabytes: int) -> None:
    """Let allocations beyond that fail. A service may have forbidden to set limits: it has its own."""
    with suppress(OSError, ValueError):
        size = megabytes << 20
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _rename_command_line() -> None:
    """Write the title over the arguments: that is where `ps` reads them."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    start, end = map(int, fields[_ARGUMENTS])
    room = end - start
    if room > len(TITLE) + 1:
        # A last byte that is not zero tells the kernel that a title stands here, up to the first zero.
        title = TITLE.encode().ljust(room - 1, b"\0") + b"."
        ctypes.memmove(start, title, room)
