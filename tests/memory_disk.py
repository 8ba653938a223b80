"""Where tests keep their files: in memory where there is room, for none of them outlives the
power.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_SHARED = Path("/dev/shm")
_ROOM = 4 << 30  # bytes that must be free


def folder() -> str:
    """`/dev/shm` if it has room for all tests, else the usual place of temporary files."""
    if not os.access(_SHARED, os.W_OK | os.X_OK):
        return tempfile.gettempdir()
    free = os.statvfs(_SHARED)
    return str(_SHARED) if free.f_bavail * free.f_frsize >= _ROOM else tempfile.gettempdir()
