"""Connections over a real socket: nobody's mistake costs another anything."""

import asyncio
import json
import socket
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from agentd.core.errors import NotFound
from agentd.interfaces.acp.connection import Access, ClientConnection, Routes
from agentd.interfaces.acp.flow import Unfinished
from agentd.interfaces.acp.peer import PeerGone
from agentd.interfaces.acp.socket_settings import ServerSettings
from agentd.testing import FakeClock


async def say(params, peer):
    return params


async def boom(params, peer):
    raise RuntimeError("/secret/path.py broke")


async def flood(params, peer):
    return "x" * (3 << 20)


async def missing(params, peer):
    raise NotFound("there is no such thing", cure="look elsewhere")


METHODS = {
    "_agentd/say": say,
    "_agentd/boom": boom,
    "_agentd/flood": flood,
    "_agentd/missing": missing,
}


@pytest.fixture
async def talking(open_house):
    async with open_house(methods=METHODS) as opened:
        yield opened


async def test_bad_frames_get_an_error_with_id_null_and_the_connection_goes_on(talking):
    client = await talking.client()
    for line, code in [
        (b"nonsense", -32700),
        (b"", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}', -32700),
        (b"[" * 5000, -32700),
        (b"[]", -32600),
        (b'{"id":1}', -32600),
    ]:
        await client.raw(line + b"\n")
        frame = await client.read()
        assert frame["id"] is None
        assert frame["error"]["code"] == code
    assert await client.call("_agentd/say", {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("limit", "line"), [(1 << 20, b"\xff\xfe\xfd\n"), (4096, b"x" * (5 << 20))]
)
async def test_what_is_not_utf_8_or_never_ends_gets_an_error_and_the_end(open_house, limit, line):
    async with open_house(ServerSettings(max_frame_bytes=limit), METHODS) as house:
        client = await house.client()
        client.writer.write(line)
        frame = await client.read()
        assert frame["id"] is None
        assert frame["error"]["code"] in (-32700, -32600)
        assert await client.read() is None
        await client.close()
        await house.settle(0)


_LONG = b"x" * (1 << 20)


@pytest.mark.parametrize(
    ("line", "call_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"_agentd/say","params":{"a":"%s"}}' % _LONG, 7),
        (b'{"jsonrpc": "2.0", "params": {"a": "%s", "id": 5}, "id": "p\\"1"}' % _LONG, 'p"1'),
        (b'{"params":{"a":"%s"},"id":8,"method":"_agentd/say"}' % (_LONG * 5), 8),
        (b'{"params":{"a":"%s","id":5}}' % _LONG, None),
        (b'{"params":{"a":"%s","b":{"id":5}}}' % _LONG, None),
        (b'{"id":true,"params":{"a":"%s"}}' % _LONG, None),
        (_LONG + b"x", None),
    ],
    ids=["id first", "id last", "several times too long", "inner", "deeper", "no id", "no frame"],
)
async def test_a_frame_that_is_too_long_is_answered_by_its_id_and_the_connection_goes_on(
    talking, line, call_id
):
    client = await talking.client()
    going_on = b'{"jsonrpc":"2.0","id":99,"method":"_agentd/say","params":{"a":1}}'
    await client.raw(b"%s\n%s\n" % (line, going_on))
    frame = await client.read()
    assert frame["id"] == call_id
    assert frame["error"]["code"] == -32600
    assert "max_frame_bytes" in frame["error"]["message"]
    assert (await client.answer(99))["result"] == {"a": 1}


@pytest.mark.parametrize("line", [b"x" * (3 << 20), b"\xff\n" + b"x" * (3 << 20)])
async def test_who_leaves_in_the_middle_of_a_bad_frame_is_no_error(talking, line):
    with capture_logs() as logs:
        client = await talking.client()
        assert await client.call("_agentd/say", {}) == {}
        client.writer.write(line)
        await asyncio.sleep(0)
        client.writer.transport.abort()
        await talking.settle(0)
    assert [one for one in logs if one["log_level"] == "error"] == []


async def test_frames_that_are_begun_and_not_finished_have_a_bound_over_all_clients(open_house):
    async with open_house(ServerSettings(max_frame_bytes=4096), METHODS) as house:
        clients = [await house.client() for _ in range(40)]
        await house.settle(40)
        for client in clients:
            await client.raw(b'{"jsonrpc":"2.0","method":"' + b"x" * 4000)
        await house.settle(16)
        told = [await client.read() for client in clients[:24]]
        assert {frame["error"]["code"] for frame in told} == {-32012}
        assert await (await house.client()).call("_agentd/say", {"a": 1}) == {"a": 1}
        for client in clients[24:]:
            await client.close()
        await house.settle(1)
        again = await house.client()
        await again.raw(b'{"jsonrpc":"2.0","id":1,"method":"_agentd/say","params":')
        await again.raw(b"{}}\n")
        assert (await again.answer(1))["result"] == {}


async def test_a_frame_may_come_byte_by_byte_and_two_in_one_piece(talking):
    client = await talking.client()
    line = b'{"jsonrpc":"2.0","id":%d,"method":"_agentd/say"}\n'
    for byte in line % 1:
        await client.raw(bytes([byte]))
    await client.raw(line % 2 + line % 3)
    for number in (1, 2, 3):
        assert (await client.answer(number))["result"] == {}


async def test_a_frame_of_exactly_the_limit_is_read(talking):
    client = await talking.client()
    head = b'{"jsonrpc":"2.0","id":1,"method":"_agentd/say","params":{"a":"'
    room = (1 << 20) - len(head) - 3
    await client.raw(head + b"x" * room + b'"}}\n')
    assert len((await client.answer(1))["result"]["a"]) == room


async def test_a_call_that_breaks_tells_nothing_of_the_code(talking):
    client = await talking.client()
    error = await client.fail("_agentd/boom")
    assert error["code"] == -32603
    assert "secret" not in json.dumps(error)
    assert await client.call("_agentd/say") == {}


async def test_an_answer_that_fits_no_line_is_refused_and_the_connection_goes_on(talking):
    client = await talking.client()
    error = await client.fail("_agentd/flood")
    assert (error["code"], error["data"]["code"]) == (-32011, "too_large")
    assert await client.call("_agentd/say") == {}


async def test_an_error_of_ours_has_code_and_cure(talking):
    client = await talking.client()
    error = await client.fail("_agentd/missing")
    assert error == {
        "code": -32002,
        "message": "there is no such thing",
        "data": {"code": "not_found", "cure": "look elsewhere"},
    }


async def test_an_unknown_method_is_named(talking):
    client = await talking.client()
    error = await client.fail("session/dance")
    assert error["code"] == -32601
    assert "session/dance" in error["message"]


async def test_of_40_calls_at_once_32_run_and_8_are_busy(open_house):
    release = asyncio.Event()

    async def wait(params, peer):
        await release.wait()
        return {"ok": True}

    async with open_house(methods={"_agentd/wait": wait}) as house:
        client = await house.client()
        ids = [await client.send("_agentd/wait") for _ in range(40)]
        busy = [await client.answer(call_id) for call_id in ids[32:]]
        assert {frame["error"]["code"] for frame in busy} == {-32012}
        assert {frame["error"]["data"]["code"] for frame in busy} == {"busy"}
        release.set()
        answers = [await client.answer(call_id) for call_id in ids[:32]]
        assert all(frame["result"] == {"ok": True} for frame in answers)
        assert (await client.answer(await client.send("_agentd/wait")))["result"]


async def test_a_client_that_reads_nothing_is_dropped_after_30_seconds(open_house):
    async def much(params, peer):
        return {"text": "x" * 900_000}

    async with open_house(methods={"_agentd/much": much, "_agentd/say": say}) as house:
        stuck, good = await house.client(), await house.client()
        stuck.writer.transport.pause_reading()
        await stuck.send("_agentd/much")
        async with asyncio.timeout(10):
            while house.clock.sleeping < 2:  # one looks after the socket
                await asyncio.sleep(0.001)
        await house.clock.advance(29)
        assert house.server.connections == 2
        assert await good.call("_agentd/say") == {}
        await house.clock.advance(2)
        await house.settle(1)
        assert await good.call("_agentd/say") == {}


async def test_a_client_whose_buffer_overflows_is_dropped(open_house):
    async def flood(params, peer):
        for number in range(40_000):
            peer.notify("_agentd/noise", {"number": number, "text": "x" * 50})
        return {}

    async with open_house(methods={"_agentd/flood": flood}) as house:
        client = await house.client()
        await client.send("_agentd/flood")
        told = 0
        with suppress(ConnectionError):
            while await client.read():
                told += 1
        await house.settle(0)
        assert told < 40_000
        assert await (await house.client()).fail("_agentd/unknown")


async def test_more_clients_than_allowed_are_told_and_closed(open_house):
    async with open_house(ServerSettings(max_connections=2), METHODS) as house:
        first, second = await house.client(), await house.client()
        assert await first.call("_agentd/say") == {}
        assert await second.call("_agentd/say") == {}
        third = await house.client()
        assert (await third.read())["error"]["data"]["code"] == "busy"
        assert await third.read() is None
        await first.close()
        await house.settle(1)
        fourth = await house.client()
        assert await fourth.call("_agentd/say") == {}


async def test_another_users_clients_read_no_byte(open_house):
    async with open_house(methods=METHODS, owner_uid=4_000_000) as house:
        for _ in range(1000):
            client = await house.client()
            try:
                await client.raw(b'{"jsonrpc": "2.0", "id": 1, "method": "_agentd/say"}\n')
                assert await client.reader.read() == b""
            except ConnectionError:
                pass  # it was closed before we had written all
        assert house.server.connections == 0


async def test_calls_in_flight_are_answered_when_the_daemon_stops(open_house):
    async def wait(params, peer):
        await asyncio.Event().wait()

    async with open_house(methods={"_agentd/wait": wait, "_agentd/say": say}) as house:
        client = await house.client()
        call_id = await client.send("_agentd/wait")
        assert await client.call("_agentd/say") == {}
        house.stack.pop_all()  # the client stays
    frame = await client.answer(call_id)
    assert frame["error"]["data"]["code"] == "shutting_down"
    assert "_agentd/stopping" in [f["method"] for f in client.seen]
    assert await client.read() is None
    await client.close()


async def test_a_bad_frame_lets_the_calls_in_flight_clean_up(open_house):
    begun, cleaning, go, cleaned = (asyncio.Event() for _ in range(4))

    async def wait(params, peer):
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await go.wait()
            cleaned.set()

    async with open_house(methods={"_agentd/wait": wait}) as house:
        client = await house.client()
        call_id = await client.send("_agentd/wait")
        await begun.wait()
        client.writer.write(b"\xff\n")
        client.writer.write_eof()
        await cleaning.wait()
        await house.clock.settle()  # reading has come to its end
        go.set()
        assert (await client.answer(call_id))["error"]["data"]["code"] == "busy"
        assert cleaned.is_set()
        assert await client.read() is None


async def test_who_has_sent_a_bad_frame_is_not_asked_any_more(open_house):
    begun, gone = asyncio.Event(), asyncio.Event()

    async def wait(params, peer):
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            try:
                await peer.call("_agentd/why", {})
            except PeerGone:
                gone.set()

    async with open_house(methods={"_agentd/wait": wait}) as house:
        client = await house.client()
        call_id = await client.send("_agentd/wait")
        await begun.wait()
        await client.raw(b"\xff\n")  # and does not leave: what comes after it is not looked at
        assert (await client.answer(call_id))["error"]["data"]["code"] == "busy"
        assert gone.is_set()


async def test_a_client_that_stops_writing_still_gets_its_answers(open_house):
    release = asyncio.Event()

    async def wait(params, peer):
        await release.wait()
        return {"ok": True}

    async with open_house(methods={"_agentd/wait": wait}) as house:
        client = await house.client()
        call_id = await client.send("_agentd/wait")
        client.writer.write_eof()
        await house.clock.settle()
        release.set()
        assert (await client.answer(call_id))["result"] == {"ok": True}
        assert await client.read() is None


async def test_a_last_line_without_a_newline_is_answered(talking):
    client = await talking.client()
    await client.raw(b'{"jsonrpc":"2.0","id":1,"method":"_agentd/say"}')
    client.writer.write_eof()
    assert (await client.answer(1))["result"] == {}


async def test_a_stop_before_the_first_read_ends_the_connection():
    ours, theirs = socket.socketpair()
    with theirs:
        streams = await asyncio.open_connection(sock=ours)
        nobody = Routes({}, {})
        connection = ClientConnection(
            streams, Access(nobody, nobody), ServerSettings(), FakeClock(), Unfinished(1 << 20)
        )
        serving = asyncio.create_task(connection.run())
        await asyncio.sleep(0)  # its tasks are made, and have not run
        connection.stop()
        async with asyncio.timeout(5):
            await serving
        assert theirs.recv(1) == b""  # the client hears that it has ended
