"""Images that are sent with a message."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.message import IMAGE_TYPES, image_type

_LARGEST = 64 * 1024 * 1024  # bytes of the largest file that is read


class Attachment(Struct, frozen=True):
    """A checked image, with the name that the user sees."""

    name: str
    media_type: str
    data: bytes

    def block(self) -> dict[str, Any]:
        """Return the image as a content block of a prompt."""
        encoded = base64.b64encode(self.data).decode()
        return {"type": "image", "data": encoded, "mimeType": self.media_type}

    async def fitting(self, largest: int) -> Attachment:
        """Return the image, scaled down if it has more than `largest` bytes, which is what the
        daemon takes. Raises InvalidRequest if the daemon takes no images or Pillow is not
        installed.
        """
        if not largest:
            raise InvalidRequest(
                "this daemon takes no images",
                cure="see [server] max_image_bytes and max_frame_bytes",
            )
        if len(self.data) <= largest:
            return self
        if importlib.util.find_spec("PIL") is None:
            raise InvalidRequest(
                f"{self.name} has {len(self.data)} bytes, and the daemon takes {largest}",
                cure=(
                    "make it smaller, or install what does: `make run EXTRAS=images` in the "
                    "checkout, or `pip install 'agentd-daemon[images]'`"
                ),
            )
        from agentd.interfaces.client.scaling import scale_image

        made = await asyncio.to_thread(scale_image, self.name, self.data, largest)
        return Attachment(self.name, "image/jpeg", made)


def read_image(path: Path) -> Attachment:
    """Read an image file. Blocks. Raises InvalidRequest for any other file, AgentdError if the file
    cannot be read.
    """
    try:
        path = path.expanduser()
        with open(path, "rb", opener=_at_once) as file:
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: `~` has no home folder
        why = getattr(error, "strerror", None) or "no file can be called so"
        raise AgentdError(
            f"{path} cannot be read: {why}", cure="name an image file of yours"
        ) from error
    kind = image_type(data)
    if kind is None or len(data) > _LARGEST:
        raise InvalidRequest(
            f"{path} is no image that can be sent", cure=f"send {', '.join(IMAGE_TYPES)}"
        )
    return Attachment(path.name, kind, data)


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting; for a named pipe without a writer a plain open would wait."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def smaller(name: str, size: int, made: int) -> str:
    """Return the message to the user about an image that was scaled down; sizes in bytes."""
    return f"{name} was made smaller: {size / 1000:,.0f} kB to {made / 1000:,.0f} kB"
