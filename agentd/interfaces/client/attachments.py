"""Files that go along with a message."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentd.core import message as picture
from agentd.core.errors import AgentdError, InvalidRequest

_LARGEST = 64 * 1024 * 1024  # bytes that are read to see whether they are an image


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image, checked, under its name in messages to the user."""

    name: str
    media_type: str
    data: bytes

    def block(self) -> dict[str, Any]:
        """The image as a prompt carries it."""
        encoded = base64.b64encode(self.data).decode()
        return {"type": "image", "data": encoded, "mimeType": self.media_type}

    async def fitting(self, largest: int) -> Attachment:
        """The image as a daemon that takes so many bytes takes it: a smaller one where it has more.
        Raises InvalidRequest where none is taken, or nothing is installed that makes it smaller.
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
                cure="make it smaller, or install what does: `make run EXTRAS=images` in the checkout,"
                " or `pip install 'agentd-daemon[images]'`",
            )
        from agentd.interfaces.client.scaling import scale_image

        made = await asyncio.to_thread(scale_image, self.name, self.data, largest)
        return Attachment(self.name, "image/jpeg", made)


def read_image(path: Path) -> Attachment:
    """The image in a file. Blocks. Raises InvalidRequest for any other, AgentdError for one that
    cannot be read.
    """
    try:
        path = path.expanduser()
        with open(path, "rb", opener=_at_once) as file:
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError, RuntimeError) as error:  # the latter for the home of nobody
        why = getattr(error, "strerror", None) or "no file can be called so"
        raise AgentdError(
            f"{path} cannot be read: {why}", cure="name an image file of yours"
        ) from error
    kind = picture.media_type(data)
    if kind is None or len(data) > _LARGEST:
        raise InvalidRequest(
            f"{path} is no image that can be sent", cure=f"send {', '.join(picture.TYPES)}"
        )
    return Attachment(path.name, kind, data)


def _at_once(path: str, flags: int) -> int:
    """A descriptor of a file; of a named pipe too that nobody writes to, which would be waited for."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def smaller(name: str, size: int, made: int) -> str:
    """What is said of an image that was made smaller, sizes in bytes."""
    return f"{name} was made smaller: {size / 1000:,.0f} kB to {made / 1000:,.0f} kB"
