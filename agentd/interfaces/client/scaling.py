"""Images made as small as a daemon takes them, by Pillow. Pure, and slow: not for an event loop."""

from __future__ import annotations

import io

from PIL import Image, ImageOps, UnidentifiedImageError

from agentd.core.errors import InvalidRequest

# What models look at: Anthropic and OpenAI scale what has a longer side down by themselves.
LONGEST_SIDE = 1568  # pixels
LEAST_SIDE = 64
_QUALITIES = (85, 70, 55)
_SHRINK = 0.75
MOST_PIXELS = 200_000_000  # of an image that is unpacked: what telephones make, and no bomb
Image.MAX_IMAGE_PIXELS = None  # Pillow's own limit is lower and warns on standard error


def scale_image(name: str, data: bytes, most: int) -> bytes:
    """The image as a JPEG of at most `most` bytes and LONGEST_SIDE pixels, upright, on white where it is
    transparent, of a moving one the first picture. Raises InvalidRequest for one that cannot be opened,
    has more than MOST_PIXELS, or cannot be made so small.
    """
    try:
        with Image.open(io.BytesIO(data)) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise InvalidRequest(
                    f"{name} has {opened.width} × {opened.height} pixels",
                    cure=f"send one of at most {MOST_PIXELS:,}",
                )
            opened.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))  # a JPEG is decoded smaller at once
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
