"""A client that goes without a word is no fault of the daemon's."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
import uvloop
from structlog.testing import capture_logs


async def flood(params, peer):
    for number in range(50):
        peer.notify("_agentd/note", {"number": number, "text": "x" * 1000})
    return {}


def frame(number: int, method: str) -> bytes:
    call = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
    return json.dumps(call).encode() + b"\n"


async def reset(opened, caplog, calls: int, *, unread: bool) -> list[object]:
    """What the loop and the log say of clients that go in the middle of calls."""
    loop, told = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda loop, context: told.append(context))
    with capture_logs() as logs:
        async with opened as house:
            for _ in range(20):
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
                    raw.setblocking(False)
                    await loop.sock_connect(raw, str(house.path))
                    sent = b"".join(frame(n, "_agentd/flood") for n in range(calls))
                    raw.send(sent + b'{"jsonrpc":')
                    if not unread:
                        await loop.sock_recv(raw, 100)
                    await asyncio.sleep(0)
            await house.settle(0)
    told += [one for one in logs if one["log_level"] in {"error", "critical"}]
    return told + [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("kind", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(("calls", "unread"), [(0, True), (1, False), (40, True), (40, False)])
def test_a_client_that_resets_leaves_no_traceback(open_house, caplog, kind, calls, unread):
    opened = open_house(methods={"_agentd/flood": flood})
    with asyncio.Runner(loop_factory=kind) as runner:
        assert runner.run(reset(opened, caplog, calls, unread=unread)) == []
