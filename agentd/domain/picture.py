"""Which bytes are an image that models take. Pure."""

from __future__ import annotations

_MARKS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def media_type(data: bytes) -> str | None:
    """The type of an image, told by how its bytes begin, whatever its sender calls it; None for
    anything but PNG, JPEG, GIF and WebP.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)
