"""Images as prompt content: taken where there is room, checked, kept before they are accepted,
shown again.
"""

from __future__ import annotations

import base64

import pytest
from pydantic import ValidationError

from agentd.core.errors import StorageFull
from agentd.core.transcript import NewRow, RowRole
from agentd.interfaces.acp.socket_settings import ServerSettings
from agentd.testing import PNG, MemoryBlobs

PICTURE = PNG + b"a view of the harbour"
ROOM = 64 * 1024


def block(data=PICTURE, kind="image/png", **more):
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": kind, **more}


def words(text):
    return {"type": "text", "text": text}


def asked(key, *blocks, message_id="m1"):
    return {"sessionId": key, "prompt": [*blocks], "_meta": {"agentd/messageId": message_id}}


@pytest.fixture
def blobs():
    return MemoryBlobs()


@pytest.fixture
async def house(open_house, blobs):
    async with open_house(uses={"blobs": blobs}) as opened:
        yield opened


async def capability(house):
    told = await (await house.client()).call("initialize", {"protocolVersion": 1})
    return told["agentCapabilities"]["promptCapabilities"]["image"], told["_meta"]


@pytest.mark.parametrize(
    ("frame", "image", "takes"),
    [
        (1024 * 1024, None, True),
        (ROOM, 32 * 1024, True),
        (ROOM, None, False),
        (1024 * 1024, 0, False),
    ],
)
async def test_images_are_advertised_exactly_when_they_fit_a_frame(
    open_house, blobs, frame, image, takes
):
    given = {} if image is None else {"max_image_bytes": image}
    settings = ServerSettings(max_frame_bytes=frame, **given)
    async with open_house(settings, uses={"blobs": blobs}) as house:
        can, meta = await capability(house)
        assert can is takes
        assert meta["agentd/maxFrameBytes"] == frame
        assert meta["agentd/maxImageBytes"] == (settings.max_image_bytes if takes else 0)
        client = await (await house.client()).hello()
        key = await client.new()
        frame = await client.answer(await client.send("session/prompt", asked(key, block())))
        assert ("result" in frame) is takes
        if not takes:
            assert frame["error"]["code"] == -32602
            assert "max_frame_bytes" in frame["error"]["data"]["cure"]


async def test_the_largest_image_fits_a_frame_with_a_long_message(open_house, blobs):
    settings = ServerSettings()
    async with open_house(settings, uses={"blobs": blobs}) as house:
        client = await (await house.client()).hello()
        key = await client.new()
        largest = PICTURE + bytes(settings.max_image_bytes - len(PICTURE))
        await client.call("session/prompt", asked(key, block(largest), words("x" * 15_000)))
        (image,) = house.turns.requests[0].images
        assert await blobs.read(image) == largest


def test_a_limit_on_images_that_no_frame_can_carry_is_a_mistake():
    with pytest.raises(ValidationError, match="needs max_frame_bytes = "):
        ServerSettings(max_image_bytes=1024 * 1024)
    assert ServerSettings(max_image_bytes=3 << 20, max_frame_bytes=5 << 20).takes_images


async def test_an_image_becomes_a_reference_and_its_bytes_are_kept(house, blobs):
    client = await (await house.client()).hello()
    key = await client.new()
    given = (words("what "), block(uri="file:///x.png"), words("is it?"))
    await client.call("session/prompt", asked(key, *given))
    (request,) = house.turns.requests
    (image,) = request.images
    assert request.text == "what is it?"
    assert (image.media_type, image.size) == ("image/png", len(PICTURE))
    assert await blobs.read(image) == PICTURE


async def test_an_image_alone_is_a_message_and_a_command_beside_one_is_none(house):
    client = await (await house.client()).hello()
    key = await client.new()
    await client.call("session/prompt", asked(key, block()))
    await client.call("session/prompt", asked(key, words("/help"), block(), message_id="m2"))
    assert [request.text for request in house.turns.requests] == ["", "/help"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (block(kind="image/jpeg"), "says 'image/jpeg', and the bytes are image/png"),
        (block(b"BM a bitmap", "image/bmp"), "prompt.0.data: is no image that is taken"),
        ({**block(), "data": "no*base64"}, "prompt.0.data: is no base64"),
        (block(PICTURE + bytes(700 * 1024)), "716829 bytes, and 716800 are taken"),
        ({"type": "audio", "data": "", "mimeType": "audio/wav"}, "prompt.0: audio"),
    ],
)
async def test_what_is_not_taken_is_refused_in_words(house, blobs, wrong, told):
    client = await (await house.client()).hello()
    key = await client.new()
    error = await client.fail("session/prompt", asked(key, wrong, words("x")))
    assert error["code"] == -32602
    assert told in error["message"]
    assert not house.turns.requests
    assert not blobs.files


async def test_a_full_disk_accepts_nothing(open_house):
    class Full(MemoryBlobs):
        def keep(self, pictures):
            raise StorageFull(cure="make room")

    async with open_house(uses={"blobs": Full()}) as house:
        client = await (await house.client()).hello()
        key = await client.new()
        error = await client.fail("session/prompt", asked(key, block()))
        assert error["data"] == {"code": "storage_full", "cure": "make room"}
        assert "_agentd/accepted" not in str(client.seen)


async def test_other_clients_are_told_that_there_is_an_image(house):
    first, second = [await (await house.client()).hello() for _ in range(2)]
    key = await first.new()
    await second.resume(key)
    await first.call("session/prompt", asked(key, block(), words("look")))
    while "turnEnded" not in str(second.seen):
        second.seen.append(await second.read())
    assert second.texts("user_message_chunk") == "[image image/png, 1 kB]\nlook"


def contents(client):
    updates = [f["params"]["update"] for f in client.seen if f["method"] == "session/update"]
    return [u["content"] for u in updates if u["sessionUpdate"] == "user_message_chunk"]


async def load(house, key):
    client = await (await house.client()).hello()
    await client.call("session/load", {"sessionId": key, "cwd": "/w", "mcpServers": []})
    return contents(client)


async def test_a_loaded_session_shows_its_images_again(house, blobs):
    client = await (await house.client()).hello()
    key = await client.new()
    await client.call("session/prompt", asked(key, words("look"), block()))
    assert await load(house, key) == [block(), words("look")]
    blobs.files.clear()
    shown = await load(house, key)
    assert shown[0]["text"] == (
        "[image image/png, 1 kB, not shown: the file of an image is gone]\n"
    )


async def test_many_large_images_are_shown_to_a_client_that_reads_slowly(house):
    client = await (await house.client()).hello()
    key = await client.new()
    large = block(PICTURE + bytes(600 * 1024))
    for number in range(6):
        await client.call("session/prompt", asked(key, large, message_id=f"m{number}"))
    assert await load(house, key) == [large] * 6


async def test_an_image_larger_than_a_frame_is_told_in_words(open_house, blobs):
    settings = ServerSettings(max_frame_bytes=ROOM)
    async with open_house(settings, uses={"blobs": blobs}) as house:
        client = await (await house.client()).hello()
        key = await client.new()
        async with blobs.keep([PICTURE + bytes(ROOM)]) as images:
            row = NewRow(RowRole.USER, images)
            await house.store.add_rows(key, [(row, house.clock.now())])
        shown = await load(house, key)
        assert shown[0]["text"].endswith("not shown: it does not fit a frame]\n")
