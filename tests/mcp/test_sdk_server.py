"""Against a server that is not ours: the official SDK's, over both of its wires."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.core.clock import SystemClock
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.testing.clock import FakeClock
from tests.mcp.servers import running, server

PROGRAM = str(Path(__file__).with_name("sdk_server.py"))
CLOCK = SystemClock("UTC")


@pytest.fixture
def address() -> Iterator[str]:
    argv = [sys.executable, "-W", "ignore", PROGRAM, "http"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    process.kill()
    process.wait()
    process.stdout.close()


async def used(folder: Path, settings: McpServer) -> None:
    one = server(folder, CLOCK, settings)
    async with running(one):
        await one.refresh()
        assert sorted(one.entries()) == ["add", "read_resource"]
        assert one.catalogue.listing.instructions == "Adds."
        assert (await one.call("add", {"a": 2, "b": 3})).text == "5"
        assert (await one.call("read_resource", {"uri": "note://today"})).text == "buy milk"
        assert (await one.call("add", {"a": "x", "b": 3})).is_error
        with pytest.raises(ServerFault) as caught:
            await one.call("read_resource", {"uri": "note://nowhere"})
        assert caught.value.kind == "refused"


async def test_over_standard_streams(tmp_path: Path) -> None:
    await used(tmp_path, McpServer(command=(sys.executable, "-W", "ignore", PROGRAM)))


async def test_over_http(tmp_path: Path, address: str) -> None:
    await used(tmp_path, McpServer(url=address))


async def test_an_address_where_nobody_answers_is_a_reason(tmp_path: Path) -> None:
    one = server(tmp_path, FakeClock(), McpServer(url="http://127.0.0.1:9/mcp"))
    async with running(one):
        with pytest.raises(ServerFault) as caught:
            await one.refresh()
    assert caught.value.kind == "unreachable"
