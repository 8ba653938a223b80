"""Images that are made as small as a daemon takes them."""

from __future__ import annotations

import io
import random

import pytest
from PIL import Image

from agentd.core.errors import InvalidRequest
from agentd.core.message import image_type
from agentd.interfaces.client.scaling import LONGEST_SIDE, MOST_PIXELS, scale_image


def picture(kind: str, size: tuple[int, int] = (2400, 1800), mode: str = "RGB", **more) -> bytes:
    """Noise, which no format makes small."""
    bands = len(mode)
    pixels = random.Random(1).randbytes(size[0] * size[1] * bands)
    out = io.BytesIO()
    Image.frombytes(mode, size, pixels).save(out, kind, **more)
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("JPEG", "RGB"),
        ("JPEG", "L"),
        ("JPEG", "CMYK"),
        ("PNG", "RGBA"),
        ("PNG", "LA"),
        ("WEBP", "RGB"),
    ],
)
@pytest.mark.parametrize("most", [700 << 10, 60_000])
def test_a_picture_of_any_kind_fits(kind: str, mode: str, most: int) -> None:
    data = picture(kind, mode=mode)
    made = scale_image("photo", data, most)
    assert len(data) > most >= len(made)
    assert image_type(made) == "image/jpeg"
    width, height = opened(made).size
    assert max(width, height) <= LONGEST_SIDE
    assert width / height == pytest.approx(4 / 3, rel=0.03)


def test_a_photo_that_was_taken_upright_stands_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    made = opened(scale_image("photo", picture("JPEG", exif=exif), 700 << 10))
    assert made.height > made.width


def test_what_was_transparent_is_white() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (2000, 2000), (0, 0, 0, 0)).save(out, "PNG")
    assert opened(scale_image("photo", out.getvalue(), 50_000)).getpixel((5, 5)) == (255, 255, 255)


def test_of_a_moving_picture_the_first_one_is_taken() -> None:
    out = io.BytesIO()
    first, second = (Image.new("RGB", (1700, 900), colour) for colour in ("red", "blue"))
    first.save(out, "GIF", save_all=True, append_images=[second])
    red, green, blue = opened(scale_image("photo", out.getvalue(), 700 << 10)).getpixel((9, 9))
    assert red > 200 > 50 > max(green, blue)


@pytest.mark.parametrize("damage", ["cut", "words", "nothing"])
def test_what_cannot_be_opened_is_refused_by_name(damage: str) -> None:
    data = {"cut": picture("PNG")[:5000], "words": b"\x89PNG\r\n\x1a\nwords", "nothing": b""}[
        damage
    ]
    with pytest.raises(InvalidRequest, match=r"photo\.png cannot be opened"):
        scale_image("photo.png", data, 100)


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    out = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(out, "PNG")  # 50 kB
    assert MOST_PIXELS < 20_000 * 20_000
    with pytest.raises(InvalidRequest, match="has 20000 × 20000 pixels"):
        scale_image("bomb.png", out.getvalue(), 100)


def test_what_cannot_be_made_so_small_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="as small as 100 bytes"):
        scale_image("photo", picture("JPEG"), 100)
