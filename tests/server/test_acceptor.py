"""A daemon whose socket is taken away is reached again."""

import shutil
import socket
import stat

import pytest
from structlog.testing import capture_logs

SECONDS = 4  # by then it has been looked once


def modes(path):
    return stat.S_IMODE(path.parent.stat().st_mode), stat.S_IMODE(path.stat().st_mode)


def of(logs, event):
    return [entry for entry in logs if entry["event"] == event]


async def test_a_socket_that_was_removed_is_bound_again_and_who_is_in_stays(house):
    before = await (await house.client()).hello()
    house.path.unlink()
    with pytest.raises(FileNotFoundError):
        await house.client()
    with capture_logs() as logs:
        await house.clock.advance(SECONDS)
    await (await house.client()).hello()
    assert modes(house.path) == (0o700, 0o600)
    assert len(of(logs, "socket_was_gone")) == 1
    assert await before.new()


async def test_it_is_bound_again_as_often_as_it_is_removed_and_is_gone_at_the_end(open_house):
    async with open_house() as house:
        for _ in range(3):
            house.path.unlink()
            await house.clock.advance(SECONDS)
            await (await house.client()).hello()
    assert not house.path.exists()


async def test_a_folder_that_was_removed_is_made_again_and_private(open_house, short_path):
    async with open_house(path=short_path / "run" / "agentd" / "agentd.sock") as house:
        shutil.rmtree(short_path / "run")
        await house.clock.advance(SECONDS)
        await (await house.client()).hello()
        assert modes(house.path) == (0o700, 0o600)


async def test_a_socket_in_its_place_is_left_there(house):
    bound = house.path.stat().st_ino
    with capture_logs() as logs:
        await house.clock.advance(10 * SECONDS)
    assert house.path.stat().st_ino == bound
    assert logs == []


async def test_a_foreign_file_is_left_alone_and_told_once(open_house):
    async with open_house() as house:
        house.path.unlink()
        house.path.write_text("precious")
        with capture_logs() as logs:
            await house.clock.advance(10 * SECONDS)
        assert [entry["log_level"] for entry in of(logs, "socket_unreachable")] == ["warning"]
        assert "move it away" in logs[0]["cure"]
        moved = house.path.rename(house.path.with_name("moved"))
        await house.clock.advance(SECONDS)
        await (await house.client()).hello()
        assert moved.read_text() == "precious"
        moved.replace(house.path)
    assert house.path.read_text() == "precious"


async def test_a_foreign_socket_is_left_alone(open_house):
    with socket.socket(socket.AF_UNIX) as other:
        async with open_house() as house:
            house.path.unlink()
            other.bind(str(house.path))
            bound = house.path.stat().st_ino
            await house.clock.advance(SECONDS)
            assert house.path.stat().st_ino == bound
        assert house.path.stat().st_ino == bound


async def test_a_link_in_place_of_the_folder_is_not_followed(open_house, short_path):
    async with open_house(path=short_path / "run" / "agentd.sock") as house:
        elsewhere = short_path / "elsewhere"
        elsewhere.mkdir(mode=0o755)
        shutil.rmtree(short_path / "run")
        (short_path / "run").symlink_to(elsewhere)
        with capture_logs() as logs:
            await house.clock.advance(10 * SECONDS)
        assert len(of(logs, "socket_unreachable")) == 1
        assert "symbolic link" in logs[0]["reason"]
        assert list(elsewhere.iterdir()) == []
        (short_path / "run").unlink()
        await house.clock.advance(SECONDS)
        await (await house.client()).hello()


async def test_a_folder_that_cannot_be_made_yet_is_told_and_tried_again(open_house, short_path):
    async with open_house(path=short_path / "run" / "agentd" / "agentd.sock") as house:
        shutil.rmtree(short_path / "run")
        (short_path / "run").write_text("")
        with capture_logs() as logs:
            await house.clock.advance(10 * SECONDS)
        assert len(of(logs, "socket_unreachable")) == 1
        (short_path / "run").unlink()
        await house.clock.advance(SECONDS)
        await (await house.client()).hello()
