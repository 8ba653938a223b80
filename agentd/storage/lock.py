"""Locks: one daemon per state directory, and exclusive writing of files that several programs
write.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from agentd.core.errors import AlreadyRunning
from agentd.core.paths import ensure_private_dir

_STEP = 0.02  # seconds between two tries
_TRIES = 250


@contextmanager
def folder_lock(folder: Path, tries: int = _TRIES) -> Iterator[None]:
    """Lock the folder until the block ends or the process dies: for files that several programs
    write, each for a moment only. Waits for other holders, up to `tries` times 20 ms, and blocks
    the thread meanwhile. Raises OSError; BlockingIOError if another holder does not finish in time.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for left in reversed(range(tries)):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    raise
                Event().wait(_STEP)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def state_lock(directory: Path) -> Iterator[None]:
    """Own `directory` until the block ends or the process dies; the kernel releases the lock then.

    The lock is on a file of its own, since SQLite's locks do not survive a close of its file.
    Raises AlreadyRunning, with nothing in the directory changed, if another process owns it.
    """
    ensure_private_dir(directory)
    flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(directory / "agentd.lock", flags, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"another agentd owns {directory}",
                cure="use the running one, or end it with `agentd stop`",
            ) from None
        os.fchmod(descriptor, 0o600)
        yield
    finally:
        os.close(descriptor)
