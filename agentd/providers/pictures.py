"""Reads a prompt's images just before the call that sends them; they are dropped with it.

Text replaces each image that is not sent, so that none vanishes silently.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from types import MappingProxyType

import structlog
from msgspec.structs import replace

from agentd.core.errors import AgentdError
from agentd.core.message import Block, Image, Message, Text
from agentd.core.ports import Blobs
from agentd.core.prompt import Prompt

log = structlog.get_logger()

# The Messages API limits the size of images further where there are more than 20, and takes 32 MB
# in a request.
_MOST = 20
_MOST_BYTES = 20 * 1024 * 1024
_BLIND = "this model is not given images ([provider] images)"
_NOWHERE = "its bytes are not at hand"
_OLD = "newer ones fill the request"

Pictures = Mapping[str, str]  # digest to base64
NO_PICTURES: Pictures = MappingProxyType({})


def blind(table: str) -> str:
    """Return what to do where a model cannot see images, as text that names this table of the
    configuration.
    """
    return (
        "The conversation holds images: if the model cannot see, set images = false in "
        f"{table} and restart agentd."
    )


async def with_pictures(
    prompt: Prompt, blobs: Blobs | None, *, can_see: bool
) -> tuple[Prompt, Pictures]:
    """Return the prompt with text in place of every image that is not sent, and the others as
    base64 by digest.

    Where there are too many, the newest are sent. A missing or damaged file costs only its own
    image.
    """
    if not any(isinstance(b, Image) for m in prompt.messages for b in m.blocks):
        return prompt, NO_PICTURES
    reading = _Reading(blobs if can_see else None, _NOWHERE if can_see else _BLIND)
    messages: list[Message] = []
    for message in reversed(prompt.messages):
        blocks = [await reading.shown(block) for block in reversed(message.blocks)]
        messages.append(replace(message, blocks=tuple(reversed(blocks))))
    return replace(prompt, messages=tuple(reversed(messages))), reading.pictures


class _Reading:
    """Reads the images of blocks, newest first, until the limits of a request are reached."""

    def __init__(self, blobs: Blobs | None, blind: str) -> None:
        self.pictures: dict[str, str] = {}
        self._blobs = blobs
        self._blind = blind
        self._count = self._bytes = 0

    async def shown(self, block: Block) -> Block:
        """Return the block itself, or a text in place of an image that is left out."""
        if not isinstance(block, Image):
            return block
        why = await self._take(block)
        return Text(block.left_out(why)) if why else block

    async def _take(self, image: Image) -> str:
        """Read the image and return "", or return why it is left out."""
        if self._blobs is None:
            return self._blind
        if self._count == _MOST or self._bytes + image.size > _MOST_BYTES:
            return _OLD
        if image.sha256 not in self.pictures:
            try:
                data = await self._blobs.read(image)
            except AgentdError as error:
                log.warning("image_not_shown", digest=image.sha256, reason=error.reason)
                return error.message
            encoded = await asyncio.to_thread(base64.b64encode, data)
            self.pictures[image.sha256] = encoded.decode()
        self._count += 1
        self._bytes += image.size
        return ""
