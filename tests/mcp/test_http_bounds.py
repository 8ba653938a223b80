"""A server over HTTP that sends more than anybody asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentd.core.clock import SystemClock
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.mcp_settings import McpServer
from tests.mcp.servers import running, server

PROGRAM = str(Path(__file__).with_name("flooding_site.py"))
CLOCK = SystemClock("UTC")


@contextmanager
def flooding(how: str) -> Iterator[str]:
    argv = [sys.executable, "-W", "ignore", PROGRAM, how]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("events", "more than anybody had asked for"),
        ("bytes", "more than anybody had asked for"),
        ("large", "a message of more than 8 MiB"),
        ("announced", "a message of more than 8 MiB"),
    ],
)
async def test_a_flood_is_broken_off_with_its_reason(tmp_path: Path, how: str, words: str) -> None:
    with flooding(how) as url:
        one = server(tmp_path, CLOCK, McpServer(url=url, timeout="60s"))
        async with running(one):
            await one.refresh()
            with pytest.raises(ServerFault) as caught:
                await one.call("look", {})
    assert caught.value.kind == "flooded"
    assert words in caught.value.message
    assert [problem.code for problem in one.problems()] == ["mcp_flooded"]


async def test_an_event_without_an_end_is_given_up_by_the_sdk(tmp_path: Path) -> None:
    with flooding("endless") as url:
        one = server(tmp_path, CLOCK, McpServer(url=url, timeout="60s"))
        async with running(one):
            await one.refresh()
            with pytest.raises(ServerFault, match="byte limit"):
                await one.call("look", {})


async def test_an_answer_that_is_packed_is_not_unpacked(tmp_path: Path) -> None:
    with flooding("packed") as url:
        one = server(tmp_path, CLOCK, McpServer(url=url, timeout="5s"))
        async with running(one):
            await one.refresh()
            with pytest.raises(ServerFault) as caught:
                await one.call("look", {})
    assert caught.value.kind == "protocol"
    assert "packed" in caught.value.message


async def test_an_answer_that_breaks_off_is_no_answer(tmp_path: Path) -> None:
    with flooding("cut") as url:
        one = server(tmp_path, CLOCK, McpServer(url=url, timeout="60s"))
        async with running(one):
            await one.refresh()
            with pytest.raises(ServerFault) as caught:
                await one.call("look", {})
    assert (caught.value.kind, caught.value.message) == ("died", "rogue: the connection was closed")
    assert one.problems()
