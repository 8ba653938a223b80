"""A search mirror stored in a file, which loads in a twentieth of the time that rebuilding takes.

The file is tied to the store by a mark that both contain. The store's mark is written after
everything the file holds, so a store that has lost some of that has lost the mark, too; and ids of
chunks are never reused. The mark includes how often chunks have moved to other lines.
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


LEAST = 2_000  # chunks; fewer load from the store just as fast
SHARE = 20  # the file is rewritten when one in so many chunks has changed
_FEW = 1_000  # changes that are too few to rewrite it
_FORM = 1  # version of the mirror's arrays; files of another version are not read
_MARK = "mirror"


Run = Callable[..., Awaitable[Any]]


class SavedMirror:
    """The file of the owner's mirror. `run` runs work on the mirrors' thread."""

    def __init__(self, path: Path, store: ChunkStore, run: Run) -> None:
        self._path = path
        self._new = path.with_name(f"{path.name}.new")
        self._store = store
        self._run = run
        self._erasing = 0
        self.erased = 0  # erasures so far: an older mirror may still hold the words

    def is_due(self, mirror: Mirror) -> bool:
        """Whether the mirror should be written: it is large, and has changed much or has no
        file.
        """
        size = len(mirror)
        is_old = mirror.unsaved > max(_FEW, size // SHARE) or not self._path.exists()
        return size >= LEAST and is_old

    async def load(self) -> Mirror | None:
        """Return the stored mirror, which may hold chunks that the store has lost meanwhile; None
        if there is no usable file. An unusable file is deleted. Raises StorageError.
        """
        if not await self._run(self._path.exists):
            return None
        mark = await self._store.meta(_MARK) + await self._store.meta(MOVES)
        found: Mirror | None = await self._run(self._restored, mark)
        return found

    async def save(self, mirror: Mirror, moves: str = "") -> bool:
        """Write a mirror that is level with the store, and that nobody changes meanwhile; return
        False if the file cannot be written. `moves` is the value under MOVES at that time: a file
        whose chunks have moved since is not used. Raises StorageError.
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
        """Delete the file before the block, and discard any file begun before its end, so that no
        file holds what the store erases in the block. Raises StorageError.
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
        from agentd.memory.index.search.in_memory import restore_mirror

        self._new.unlink(missing_ok=True)  # left by a killed process
        try:
            return restore_mirror(self._path, _whole(mark))
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.warning("mirror_not_restored", reason=str(error))
        self._remove()
        return None

    def _write(self, mark: str, mirror: Mirror) -> None:
        mirror.write(self._new, _whole(mark))


def _whole(mark: str) -> str:
    """Return the complete mark: it ties a file to the store, and to the version of mirrors, words
    and byte order.
    """
    return f"{mark} {_FORM} {words.VERSION} {sys.byteorder}"
