"""What has been begun and not finished takes no more room than it may."""

from __future__ import annotations

import asyncio

import pytest

from agentd.interfaces.acp.flow import Incoming, Unfinished
from agentd.interfaces.acp.frames import FrameError


class Client:
    """One that sends, and may be given up."""

    def __init__(self, unfinished: Unfinished, longest: int = 100) -> None:
        self.reader = asyncio.StreamReader()
        self.given_up = 0
        self.incoming = Incoming(self.reader, longest, unfinished, self.give_up)

    def give_up(self) -> None:
        self.given_up += 1
        self.incoming.close()


async def begun(client: Client, data: bytes) -> asyncio.Task[bytes | None]:
    client.reader.feed_data(data)
    task = asyncio.get_running_loop().create_task(client.incoming.line())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def test_the_frame_that_began_first_is_given_up_for_room() -> None:
    unfinished = Unfinished(100)
    clients = [Client(unfinished) for _ in range(17)]
    tasks = [await begun(client, b"x" * 99) for client in clients]
    assert [client.given_up for client in clients] == [1] + [0] * 16
    assert unfinished.size == 16 * 99
    for client, task in zip(clients[1:], tasks[1:], strict=True):
        client.reader.feed_data(b"\n")
        assert await task == b"x" * 99
    assert unfinished.size == 0
    tasks[0].cancel()


async def test_what_a_client_leaves_behind_is_given_back() -> None:
    unfinished = Unfinished(100)
    client = Client(unfinished)
    client.reader.feed_data(b"x" * 60)
    client.reader.feed_eof()
    assert await client.incoming.line() == b"x" * 60
    assert await client.incoming.line() is None
    assert unfinished.size == 0


async def test_a_line_that_is_too_long_is_refused_and_the_next_one_read() -> None:
    client = Client(Unfinished(100))
    client.reader.feed_data(b"x" * 101 + b"\n" + b"y" * 600 + b"\nnext\n" + b"z" * 101)
    client.reader.feed_eof()
    for _ in range(2):
        with pytest.raises(FrameError, match="longer than 100 bytes") as error:
            await client.incoming.line()
        assert not error.value.fatal
    assert await client.incoming.line() == b"next"
    with pytest.raises(FrameError):
        await client.incoming.line()
    assert await client.incoming.line() is None


@pytest.mark.parametrize("longest", [1024, 4096])
@pytest.mark.parametrize(("more", "is_fatal"), [(0, False), (1, True)])
async def test_a_line_ends_the_connection_by_its_length_however_it_is_read(
    longest, more, is_fatal
) -> None:
    client = Client(Unfinished(longest), longest)
    client.reader.feed_data(b"x" * (64 * longest + more) + b"\nnext\n")
    with pytest.raises(FrameError) as error:
        await client.incoming.line()
    assert error.value.fatal == is_fatal


async def test_a_line_that_does_not_end_is_given_up() -> None:
    unfinished = Unfinished(4096)
    client = Client(unfinished, 4096)
    client.reader.feed_data(b"x" * (65 * 4096 + 2 * 4096))
    with pytest.raises(FrameError, match="longer than 4096 bytes") as error:
        await client.incoming.line()
    assert error.value.fatal
    assert unfinished.size == 0
