"""Stores the bytes of images as files, each named by its SHA-256.

A file is written beside its place, synced and renamed, so it is complete or absent. A crash between
writing a file and storing the message that refers to it leaves an unused file, which the next sweep
deletes.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agentd.core.errors import InvalidRequest, NotFound, StorageCorrupt, StorageError, StorageFull
from agentd.core.failpoints import hit
from agentd.core.message import IMAGE_TYPES, Image, image_type
from agentd.core.paths import ensure_private_dir, read_regular, sync_directory, write_private

_NAME = re.compile(r"[0-9a-f]{64}")
_PART = (".agentd-", ".tmp")  # a file that is being written
_FULL = (errno.ENOSPC, errno.EDQUOT)


class FileBlobs:
    """The Blobs port over a folder. `referred` returns the digests of the images that must stay."""

    def __init__(self, folder: Path, referred: Callable[[], Awaitable[Collection[str]]]) -> None:
        self._folder = folder
        self._referred = referred
        self._kept: Counter[str] = Counter()  # digests in use by open `keep` blocks
        self._alone = asyncio.Lock()  # nothing is stored while `sweep` decides what to delete

    @asynccontextmanager
    async def keep(self, pictures: Sequence[bytes]) -> AsyncIterator[tuple[Image, ...]]:
        """See Blobs. Raises StorageError, StorageFull; nothing counts as stored then."""
        images = tuple([await asyncio.to_thread(_describe, data) for data in pictures])
        names = [image.sha256 for image in images]
        self._kept.update(names)
        try:
            if images:
                async with self._alone:
                    for name, data in dict(zip(names, pictures, strict=True)).items():
                        await asyncio.to_thread(self._put, name, data)
                hit("image.stored")
            yield images
        finally:
            self._kept.subtract(names)
            self._kept = +self._kept

    async def read(self, image: Image) -> bytes:
        """See Blobs."""
        return await asyncio.to_thread(self._get, image)

    async def sweep(self) -> int:
        """See Blobs. Raises StorageError."""
        async with self._alone:
            kept = frozenset(self._kept)
            referred = frozenset(await self._referred()) | kept
            return await asyncio.to_thread(self._remove_but, referred)

    def _put(self, name: str, data: bytes) -> None:
        path = self._path(name)
        try:
            ensure_private_dir(self._folder)
            ensure_private_dir(path.parent)
            if _is_whole(path, name):
                sync_directory(path.parent)
            else:  # a cancelled call may still be writing the same image
                write_private(path, data, part=secrets.token_hex(8).join(_PART))
        except OSError as error:
            kind = StorageFull if error.errno in _FULL else StorageError
            raise kind(
                f"the image cannot be stored ({error.strerror})",
                cure="make room on the disk, then send it again",
            ) from error

    def _get(self, image: Image) -> bytes:
        try:
            data = read_regular(self._path(image.sha256))
        except FileNotFoundError:
            raise NotFound(
                "the file of an image is gone", cure="restore a backup, or send it again"
            ) from None
        except OSError as error:
            raise StorageCorrupt(
                f"the file of an image cannot be read ({error.strerror})",
                cure="see `agentd doctor`, or send the image again",
            ) from error
        if hashlib.sha256(data).hexdigest() != image.sha256:
            raise StorageCorrupt(
                "the file of an image is damaged", cure="restore a backup, or send it again"
            )
        return data

    def _remove_but(self, referred: Collection[str]) -> int:
        try:
            gone = [path for path in self._files() if path.name not in referred]
            for path in gone:
                path.unlink(missing_ok=True)
            for folder in {path.parent for path in gone}:
                sync_directory(folder)
        except OSError as error:
            raise StorageError(
                f"an image that nothing refers to cannot be deleted ({error.strerror})",
                cure=f"see to it that {self._folder} can be written, then restart",
            ) from error
        return len(gone)

    def _files(self) -> Iterator[Path]:
        """Yield complete files, and those that a crash left incomplete."""
        for path in self._folder.glob("??/*"):
            is_part = path.name.startswith(_PART[0]) and path.name.endswith(_PART[1])
            if is_part or _NAME.fullmatch(path.name):
                yield path

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            msg = f"not a digest: {name!r}"
            raise ValueError(msg)
        return self._folder / name[:2] / name


def _describe(data: bytes) -> Image:
    kind = image_type(data)
    if kind is None:
        raise InvalidRequest(
            "the image is none that can be shown to a model",
            cure=f"send one of {', '.join(IMAGE_TYPES)}",
        )
    return Image(kind, hashlib.sha256(data).hexdigest(), len(data))


def _is_whole(path: Path, name: str) -> bool:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest() == name
    except FileNotFoundError:
        return False
