"""Images in imported transcripts: bytes are kept, references are checked, the rest becomes
words.
"""

from __future__ import annotations

import base64

import pytest

from agentd.core.message import Image, Text
from agentd.core.transcript import export_row
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.acp.importer import Importer
from agentd.interfaces.commands.sessions import SESSIONS, SessionCommands
from agentd.testing import PNG, FakeClock, MemoryBlobs, MemorySessions

KEY = SessionKey("chat:old")
PICTURE = PNG + b"a view of the harbour"
LOOK = {"type": "text", "text": "look"}


def inline(data=PICTURE):
    encoded = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": "image/png", "data": encoded}
    return {"type": "image", "source": source}


class Nobody:
    """Stands for every part that an import has no use for, and for the client."""


def importing(importer):
    commands = SessionCommands(Nobody(), Nobody(), Nobody(), Nobody(), Nobody(), importer)
    return methods(SESSIONS, commands)["_agentd/sessions/import"]


async def imported(blobs, *content, role="user", key=KEY):
    clock = FakeClock()
    store = MemorySessions(clock)
    lines = [{"role": role, "content": [*content]}]
    await importing(Importer(store, clock, blobs))({"key": key, "lines": lines}, Nobody())
    return (await store.rows(key))[0]


async def test_bytes_in_a_line_become_a_reference():
    blobs = MemoryBlobs()
    row = await imported(blobs, inline(), LOOK)
    image, words = row.blocks
    assert words == Text("look")
    assert (image.media_type, image.size) == ("image/png", len(PICTURE))
    assert await blobs.read(image) == PICTURE


async def test_what_an_export_refers_to_is_found_again():
    blobs = MemoryBlobs()
    row = await imported(blobs, inline(), LOOK)
    again = await imported(blobs, *export_row(row)["content"])
    assert again.blocks == row.blocks


@pytest.mark.parametrize("blobs", [MemoryBlobs(), None])
async def test_a_reference_without_its_bytes_becomes_words(blobs):
    lost = {"type": "image", "media_type": "image/png", "sha256": "a" * 64, "size": 34_000}
    row = await imported(blobs, lost, LOOK)
    told = "[image image/png, 34 kB, not sent: its bytes did not come along]"
    assert row.blocks == (Text(told), Text("look"))


async def test_what_is_no_image_and_what_an_assistant_showed_becomes_words():
    blobs = MemoryBlobs()
    assert (await imported(blobs, inline(b"BM a bitmap"))).blocks == (Text("[image]"),)
    url = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    assert (await imported(blobs, url)).blocks == (Text("[image at https://x/y.png]"),)
    row = await imported(blobs, inline(), role="assistant")
    assert not any(isinstance(block, Image) for block in row.blocks)
