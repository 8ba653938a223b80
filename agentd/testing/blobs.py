"""A double of the store of images."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from agentd.core.errors import InvalidRequest, NotFound
from agentd.core.message import Image, image_type

PNG = b"\x89PNG\r\n\x1a\n"  # the first bytes of every PNG image


class MemoryBlobs:
    """Blobs in memory; `sweep` removes nothing."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    @asynccontextmanager
    async def keep(self, pictures: Sequence[bytes]) -> AsyncIterator[tuple[Image, ...]]:
        kinds = [image_type(data) for data in pictures]
        if None in kinds:
            raise InvalidRequest("the image is none that can be shown to a model")
        images = tuple(
            Image(str(kind), hashlib.sha256(data).hexdigest(), len(data))
            for kind, data in zip(kinds, pictures, strict=True)
        )
        self.files |= {i.sha256: data for i, data in zip(images, pictures, strict=True)}
        yield images

    async def read(self, image: Image) -> bytes:
        if image.sha256 not in self.files:
            raise NotFound("the file of an image is gone")
        return self.files[image.sha256]

    async def sweep(self) -> int:
        return 0
