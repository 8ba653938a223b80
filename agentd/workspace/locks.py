"""Locks on workspace paths, in this process and between processes.

In the process each path has a lock of its own. Other processes are kept out by one flock(2) on the
workspace directory itself, held while any path is: a file cannot carry the lock, since atomic
replacement swaps its inode, and a lock file would litter the user's folder. A script joins in with
`flock WORKSPACE -c 'echo "- milk" >> WORKSPACE/memory/list.md'`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from agentd.core.errors import WorkspaceError
from agentd.core.ports import Clock
from agentd.workspace.resolver import ConfinedFolder

_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 30.0


class Locks:
    """Path locks of one workspace."""

    def __init__(self, beneath: ConfinedFolder, clock: Clock) -> None:
        self._beneath = beneath
        self._clock = clock
        self._paths: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._door = asyncio.Lock()
        self._holders = 0
        self._fd = -1

    @asynccontextmanager
    async def hold(self, path: str) -> AsyncIterator[None]:
        """Hold `path` until the context is left. Raises WorkspaceError if another program keeps the
        workspace locked for 30 seconds.
        """
        lock = self._paths.setdefault(path, asyncio.Lock())
        async with lock:
            await self._enter()
            try:
                yield
            finally:
                self._leave()

    async def _enter(self) -> None:
        async with self._door:
            if self._holders == 0:
                self._fd = await self._flock()
            self._holders += 1

    def _leave(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            os.close(self._fd)  # releases the flock

    async def _flock(self) -> int:
        fd = self._beneath.open_root()
        try:
            deadline = self._clock.monotonic() + _PATIENCE_SECONDS
            while not _try_flock(fd):
                if self._clock.monotonic() >= deadline:
                    raise WorkspaceError(
                        "another program has locked the workspace",
                        cure="end the program that holds it: `lsof WORKSPACE` names it",
                    )
                await self._clock.sleep(_POLL_SECONDS)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _try_flock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
