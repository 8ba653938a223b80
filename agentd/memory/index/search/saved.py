"""A mirror in a file, so that a start has nothing to read again: loading it takes a twentieth of the time.

The file is tied to the store by a mark that stands in both. The mark is stored behind all that the file
holds, so whatever is lost of the store takes the mark along; and ids of chunks are never used again. How
often chunks have moved to other lines belongs to the mark.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from agentd.core.errors import StorageError
from agentd.core.paths import sync_directory
from agentd.core.ports import ChunkStore
from agentd.core.search import MOVES
from agentd.memory.index.search import words

if TYPE_CHECKING:
    from agentd.memory.index.search.in_memory import Mirror

log = structlog.get_logger()


LEAST = 2_000  # chunks; fewer are read from the store as quickly
SHARE = 20  # so many chunks take one change, until it is written again
_FEW = 1_000  # changes that are nothing
_FORM = 1  # of what mirrors give; another one is not read
_MARK = "mirror"


Run = Callable[..., Awaitable[Any]]


class SavedMirror:
    """The file of the owner's mirror. `run` does work on the thread of the mirrors."""

    def __init__(self, path: Path, store: ChunkStore, run: Run) -> None:
        self._path = path
        self._new = path.with_name(f"{path.name}.new")
        self._store = store
        self._run = run
        self._erasing = 0
        self.erased = 0  # how often something was: a mirror that was there before has the words yet

    def is_due(self, mirror: Mirror) -> bool:
        """Whether it is worth writing."""
        size = len(mirror)
        is_old = mirror.unsaved > max(_FEW, size // SHARE) or not self._path.exists()
        return size >= LEAST and is_old

    async def load(self) -> Mirror | None:
        """The chunks that it holds, of which the store may have lost some; None if there is no file, or none
        that can be used, which is then gone. Raises StorageError.
        """
        if not await self._run(self._path.exists):
            return None
        mark = await self._store.meta(_MARK) + await self._store.meta(MOVES)
        found: Mirror | None = await self._run(self._restored, mark)
        return found

    async def save(self, mirror: Mirror, moves: str = "") -> bool:
        """Write a mirror that is level with the store, while nobody else changes it; False if there is no
        room. `moves` is what stood under MOVES when it was: a file with chunks on former lines is not used.
        Raises StorageError.
        """
        erased, mark = self.erased, secrets.token_hex(16)
        try:
            await self._run(self._write, mark + moves, mirror)
            await self._store.set_meta(_MARK, mark)
            if self.erased == erased and not self._erasing:
                self._new.replace(self._path)
                mirror.unsaved = 0
        except OSError as error:
            log.warning("mirror_not_saved", reason=error.strerror)
            return False
        finally:
            with suppress(OSError):
                self._new.unlink(missing_ok=True)
        return True

    @asynccontextmanager
    async def without(self) -> AsyncIterator[None]:
        """No file is there before the block, and none that was begun before its end after it: what the
        store forgets meanwhile is in none. Raises StorageError.
        """
        self._erasing += 1
        self.erased += 1
        try:
            await self._run(self._remove)
            yield
        finally:
            self._erasing -= 1
            self.erased += 1

    def _remove(self) -> None:
        try:
            is_there = self._path.exists()
            for path in (self._path, self._new):
                path.unlink(missing_ok=True)
            if is_there:
                sync_directory(self._path.parent)
        except OSError as error:
            raise StorageError(
                f"{self._path.name} cannot be deleted ({error.strerror})",
                cure=f"let agentd's user write in {self._path.parent}",
            ) from error

    def _restored(self, mark: str) -> Mirror | None:
        from agentd.memory.index.search.in_memory import restored

        self._new.unlink(missing_ok=True)  # of one that was killed
        try:
            return restored(self._path, _whole(mark))
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.warning("mirror_not_restored", reason=str(error))
        self._remove()
        return None

    def _write(self, mark: str, mirror: Mirror) -> None:
        mirror.write(self._new, _whole(mark))


def _whole(mark: str) -> str:
    """What ties a file to the store, and to the rules by which it was written."""
    return f"{mark} {_FORM} {words.VERSION} {sys.byteorder}"
