"""Scales images down with Pillow to the size that the daemon takes. Pure, but slow: run it in a
thread.
"""

from __future__ import annotations

import io

from PIL import Image, ImageOps, UnidentifiedImageError

from agentd.core.errors import InvalidRequest

# Anthropic and OpenAI themselves scale images down whose longer side exceeds this.
LONGEST_SIDE = 1568  # pixels
LEAST_SIDE = 64
_QUALITIES = (85, 70, 55)
_SHRINK = 0.75
MOST_PIXELS = 200_000_000  # of a decoded image: enough for telephones, bounds bombs
Image.MAX_IMAGE_PIXELS = None  # Pillow's own limit is lower and warns on standard error


def scale_image(name: str, data: bytes, most: int) -> bytes:
    """Return the image as a JPEG of at most `most` bytes and LONGEST_SIDE pixels: upright, with
    transparent parts white, of an animation the first frame. Raises InvalidRequest if the image
    cannot be opened, has more than MOST_PIXELS, or cannot be made so small.
    """
    try:
        with Image.open(io.BytesIO(data)) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise InvalidRequest(
                    f"{name} has {opened.width} × {opened.height} pixels",
                    cure=f"send one of at most {MOST_PIXELS:,}",
                )
            opened.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))  # decodes a JPEG at reduced size
            picture = _flat(ImageOps.exif_transpose(opened))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise InvalidRequest(
            f"{name} cannot be opened to make it smaller: {error}", cure="send another copy of it"
        ) from error
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    while max(picture.size) >= LEAST_SIDE:
        for quality in _QUALITIES:
            if len(made := _jpeg(picture, quality)) <= most:
                return made
        width, height = picture.size
        picture = picture.resize((max(1, int(width * _SHRINK)), max(1, int(height * _SHRINK))))
    raise InvalidRequest(
        f"{name} cannot be made as small as {most} bytes", cure="raise [server] max_image_bytes"
    )


def _flat(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    ground = Image.new("RGBA", clear.size, "white")
    return Image.alpha_composite(ground, clear).convert("RGB")


def _jpeg(picture: Image.Image, quality: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality, optimize=True)
    return out.getvalue()
