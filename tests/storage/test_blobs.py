"""Images as files: whole or not there, each once, and gone when nothing refers to them."""

from __future__ import annotations

import asyncio
import stat
from datetime import UTC, datetime

import pytest

from agentd.core.errors import InvalidRequest, NotFound, StorageCorrupt, StorageError
from agentd.core.message import Image, Text
from agentd.core.transcript import NewRow, RowRole
from agentd.core.turn import MAIN, SessionKey, StopReason, Turn, TurnRequest
from agentd.storage.blobs import FileBlobs
from agentd.testing import PNG

PICTURE, OTHER = PNG + b"a view of the harbour", b"GIF89a of a cat"
AT = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def referred():
    return set()


@pytest.fixture
def blobs(tmp_path, referred):
    async def told():
        return frozenset(referred)

    return FileBlobs(tmp_path / "blobs", told)


def files(blobs, tmp_path):
    return sorted(path for path in (tmp_path / "blobs").rglob("*") if path.is_file())


async def kept(blobs, *pictures):
    async with blobs.keep(pictures) as images:
        return images


async def test_what_was_kept_is_read_back_byte_for_byte(blobs):
    image, other = await kept(blobs, PICTURE, OTHER)
    assert (image.media_type, image.size) == ("image/png", len(PICTURE))
    assert other.media_type == "image/gif"
    assert await blobs.read(image) == PICTURE
    assert await blobs.read(other) == OTHER


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG + b"x", "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_is_known_by_how_it_begins(blobs, data, kind):
    (image,) = await kept(blobs, data)
    assert image.media_type == kind


@pytest.mark.parametrize("data", [b"", b"BM bitmap", b"<svg/>", b"RIFF\x10\x00\x00\x00WAVE"])
async def test_what_is_no_image_is_refused_and_leaves_nothing(blobs, tmp_path, data):
    with pytest.raises(InvalidRequest, match="image"):
        await kept(blobs, PICTURE, data)
    assert files(blobs, tmp_path) == []


async def test_equal_bytes_are_one_file_for_the_owner_alone(blobs, tmp_path):
    first = await kept(blobs, PICTURE, PICTURE)
    assert first == (await kept(blobs, PICTURE)) * 2
    (path,) = files(blobs, tmp_path)
    assert path.parent.name == path.name[:2] == first[0].sha256[:2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    folders = (path.parent, path.parent.parent)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


async def test_many_at_once_do_not_disturb_each_other(blobs, tmp_path):
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(kept(blobs, PICTURE, OTHER))
    assert len(files(blobs, tmp_path)) == 2


async def test_a_damaged_file_is_told_and_mended_by_sending_it_again(blobs, tmp_path):
    (image,) = await kept(blobs, PICTURE)
    (path,) = files(blobs, tmp_path)
    path.write_bytes(PICTURE[:-1])
    with pytest.raises(StorageCorrupt, match="damaged"):
        await blobs.read(image)
    await kept(blobs, PICTURE)
    assert await blobs.read(image) == PICTURE
    path.unlink()
    with pytest.raises(NotFound):
        await blobs.read(image)


async def test_a_sweep_takes_only_what_nothing_refers_to(blobs, tmp_path, referred):
    image, other = await kept(blobs, PICTURE, OTHER)
    referred.add(image.sha256)
    (tmp_path / "blobs" / image.sha256[:2] / ".agentd-half.tmp").write_bytes(b"half")
    assert await blobs.sweep() == 2
    assert [path.name for path in files(blobs, tmp_path)] == [image.sha256]
    with pytest.raises(NotFound):
        await blobs.read(other)


async def test_a_sweep_leaves_what_is_on_its_way_into_a_message(blobs):
    async with blobs.keep([PICTURE]) as (image,):
        async with blobs.keep([PICTURE]):
            pass
        assert await blobs.sweep() == 0
        assert await blobs.read(image) == PICTURE
    assert await blobs.sweep() == 1


async def test_a_sweep_of_no_folder_finds_nothing(blobs):
    assert await blobs.sweep() == 0


async def test_a_place_that_cannot_be_written_is_told(blobs, tmp_path):
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cannot be stored"):
        await kept(blobs, PICTURE)


async def test_a_digest_never_leads_out_of_the_folder(blobs):
    with pytest.raises(ValueError, match="digest"):
        await blobs.read(Image("image/png", "../../etc/passwd", 1))


IMAGE = Image("image/png", "a" * 64, 12)
SECOND = Image("image/gif", "b" * 64, 7)


def request(text="look", message_id="m1", images=(IMAGE,), session=MAIN):
    return TurnRequest(session, text, message_id, images=images)


def ended(receipt):
    return Turn(receipt.session, receipt.message_id, stop_reason=StopReason.END_TURN)


async def test_a_message_keeps_its_images_before_its_words(stores):
    sessions = stores.sessions
    receipt = await sessions.receive(request(images=(IMAGE, SECOND)))
    (pending,) = await sessions.pending()
    assert pending.request.images == (IMAGE, SECOND)
    (row,) = await sessions.begin(receipt.turn_id)
    assert row.blocks == (IMAGE, SECOND, Text("look"))
    await sessions.finish(receipt.turn_id, ended(receipt))
    assert (await sessions.rows(MAIN))[0].images == (IMAGE, SECOND)


async def test_a_message_may_be_an_image_without_words(stores):
    receipt = await stores.sessions.receive(request(""))
    (row,) = await stores.sessions.begin(receipt.turn_id)
    assert row.blocks == (IMAGE,)


async def test_images_are_referred_to_from_the_moment_a_message_is_received(stores):
    sessions = stores.sessions
    assert await sessions.images() == frozenset()
    receipt = await sessions.receive(request())
    assert await sessions.images() == {IMAGE.sha256}
    await sessions.begin(receipt.turn_id)
    await sessions.finish(receipt.turn_id, ended(receipt))
    assert await sessions.images() == {IMAGE.sha256}
    await sessions.add_rows(SessionKey("chat:old"), [(NewRow(RowRole.USER, (SECOND,)), AT)])
    assert await sessions.images() == {IMAGE.sha256, SECOND.sha256}


async def test_a_fork_refers_to_the_same_images_for_itself(stores):
    sessions, copy = stores.sessions, SessionKey("chat:copy")
    receipt = await sessions.receive(request())
    await sessions.begin(receipt.turn_id)
    await sessions.finish(receipt.turn_id, ended(receipt))
    await sessions.fork(MAIN, copy)
    await sessions.delete(MAIN)
    assert await sessions.images() == {IMAGE.sha256}
    assert (await sessions.rows(copy))[0].images == (IMAGE,)
    await sessions.delete(copy)
    assert await sessions.images() == frozenset()
