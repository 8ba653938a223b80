"""Images on the wire: stored when a prompt brings them, sent as base64 when a session is shown."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.message import Image
from agentd.core.ports import Blobs
from agentd.interfaces.acp.socket_settings import AROUND_IMAGE, ServerSettings
from agentd.interfaces.acp.updates import Update, image_words

log = structlog.get_logger()

_TOO_LARGE = "it does not fit a frame"
_RAISE = "raise [server] max_frame_bytes and max_image_bytes; docs/socket.md says how far"


class Pictures:
    """Stores the images of prompts and sends them to clients, within the limits of frames. Without
    `blobs`, or with limits that no image can meet, prompts may hold none.
    """

    def __init__(self, blobs: Blobs | None, settings: ServerSettings) -> None:
        self._blobs = blobs if settings.takes_images else None
        self._kept = blobs  # shows also what was stored under earlier limits
        self._settings = settings
        self.largest = settings.max_image_bytes if self._blobs is not None else 0  # bytes

    @asynccontextmanager
    async def keep(self, pictures: Sequence[bytes]) -> AsyncIterator[tuple[Image, ...]]:
        """Store the images of a prompt and return them, safe from deletion until the block ends;
        see Blobs. Raises InvalidRequest if no images are taken, one is too large or is no image.
        """
        if not pictures:
            yield ()
            return
        if self._blobs is None:
            raise InvalidRequest("prompt: images are not taken", cure=_RAISE)
        if (size := max(map(len, pictures))) > self.largest:
            raise InvalidRequest(
                f"prompt: an image has {size} bytes, and {self.largest} are taken",
                cure=f"make it smaller, or {_RAISE}",
            )
        async with self._blobs.keep(pictures) as images:
            yield images

    async def shown(self, image: Image) -> Update:
        """Return a `user_message_chunk` with the image in base64; with text that says why instead,
        if the image does not fit a frame or cannot be read.
        """
        if self._kept is None or _frame(image.size) > self._settings.max_frame_bytes:
            return image_words(image, _TOO_LARGE)
        try:
            data = await self._kept.read(image)
        except AgentdError as error:
            log.warning("image_not_shown", digest=image.sha256, reason=error.reason)
            return image_words(image, error.message)
        encoded = await asyncio.to_thread(base64.b64encode, data)
        content = {"type": "image", "data": encoded.decode(), "mimeType": image.media_type}
        return {"sessionUpdate": "user_message_chunk", "content": content}


def _frame(size: int) -> int:
    return (size + 2) // 3 * 4 + AROUND_IMAGE
