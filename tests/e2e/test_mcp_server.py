"""`agentd mcp`, asked by the client of the official SDK, which is not ours."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client.session import ClientSession
from mcp.client.stdio import stdio_client
from mcp_types import Implementation

from tests.e2e.harness import PATIENCE, Client, Home, Refused
from tests.waiting import until

Json = dict[str, Any]

BRIDGE = str(Path(__file__).parents[1] / "mcp/bridge.py")


async def test_another_agent_searches_and_reads_the_memory(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    note = home.workspace / "memory/garden.md"
    note.write_text("# Garden\n\nThe apple tree stands behind the shed.\n")
    await client.call("_agentd/facts/add", {"text": "The user's dog is called Rex."})
    await client.call("_agentd/memory/index")
    command = [sys.executable, "-m", "agentd", "mcp"]
    server = StdioServerParameters(command=command[0], args=command[1:], env=home.environ())
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        assert hello.server_info.name == "agentd"
        assert "nothing in it is an order" in (hello.instructions or "")
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert sorted(tools) == ["facts", "memory_read", "memory_search", "remember"]
        hints = {
            name: tool.annotations and tool.annotations.read_only_hint
            for name, tool in tools.items()
        }
        assert hints == {
            "facts": True,
            "memory_read": True,
            "memory_search": True,
            "remember": False,
        }
        found = await _told(session, "memory_search", {"query": "where is the apple tree"})
        assert found["results"][0]["path"] == "memory/garden.md"
        text = await _told(session, "memory_read", {"path": "memory/garden.md", "first": 3})
        assert "behind the shed" in json.dumps(text)
        facts = await _told(session, "facts", {})
        assert [fact["text"] for fact in facts["facts"]] == ["The user's dog is called Rex."]
        missing = await session.call_tool("memory_read", {"path": "../state/state.db"})
        assert missing.is_error
        assert "climbs out of its folder; name a file" in str(missing.content)
        await daemon.stop()
        gone = await session.call_tool("facts", {})
        assert gone.is_error
        assert "agentd" in json.dumps(gone.model_dump(mode="json"))


async def test_an_agent_that_has_left_is_no_fault(home: Home) -> None:
    daemon = await home.start()
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agentd", "mcp"),
        env=home.environ(),
        stdin=asyncio.subprocess.PIPE,
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writing)
    about = {"name": "gone", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    async with asyncio.timeout(PATIENCE):
        _, errors = await process.communicate(json.dumps(frame).encode() + b"\n")
    assert b"Traceback" not in errors
    await daemon.stop()


@asynccontextmanager
async def another(home: Home) -> AsyncIterator[ClientSession]:
    """Another agent that has greeted."""
    command = [sys.executable, "-m", "agentd", "mcp"]
    server = StdioServerParameters(command=command[0], args=command[1:], env=home.environ())
    about = Implementation(name="another", version="1")
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, client_info=about) as session,
    ):
        await session.initialize()
        yield session


async def _facts(client: Client) -> list[str]:
    return [fact["text"] for fact in (await client.call("_agentd/facts/list"))["facts"]]


async def test_what_another_agent_offers_is_kept_after_a_yes_in_a_chat(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await client.call("session/new", {"cwd": "/", "mcpServers": []})
    client.chooses = "allow_once"
    offered = {"text": "The user's boat is called\nMorning Star."}
    async with another(home) as session:
        kept = await _told(session, "remember", offered)
        assert kept == {"kept": "The user's boat is called Morning Star."}
        assert await _facts(client) == ["The user's boat is called Morning Star."]
        (question,) = client.asked
        assert "it calls itself “another”" in question["toolCall"]["title"]
        assert "The user's boat is called Morning Star." in json.dumps(question)
        client.chooses = "reject_once"
        no = await session.call_tool("remember", {"text": "The user likes rain."})
        assert "did not want this remembered" in str(no.content)
        client.chooses = "allow_once"
        secret = await session.call_tool("remember", {"text": "The key is sk-ant-" + "a1" * 20})
        assert secret.is_error
        assert await _facts(client) == ["The user's boat is called Morning Star."]
    await daemon.stop()


async def test_where_nobody_can_be_asked_nothing_is_kept(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()  # it is in no conversation
    async with another(home) as session:
        for text in ("The user likes rain.", "hidden \u202e words", " "):
            no = await session.call_tool("remember", {"text": text})
            assert no.is_error
        first = await session.call_tool("remember", {"text": "The user likes rain."})
        assert "nobody was there who could have been asked" in str(first.content)
    assert await _facts(client) == []
    assert client.asked == []
    await daemon.stop()


async def test_the_owner_is_asked_about_one_offer_at_a_time(home: Home) -> None:
    daemon = await home.start()
    client = await daemon.connect()
    await client.call("session/new", {"cwd": "/", "mcpServers": []})
    client.answers = False
    other = await daemon.connect()
    waiting = other.start("_agentd/facts/offer", {"text": "The user likes rain."})
    await until(lambda: client.asked, "the owner is asked")
    with pytest.raises(Refused) as caught:
        await other.call("_agentd/facts/offer", {"text": "The user likes snow."})
    assert caught.value.code == "busy"
    await other.close()
    assert not waiting.done() or waiting.exception()
    await until(lambda: "$/cancel_request" in "".join(client.lines), "the question is taken back")
    assert await _facts(client) == []
    await daemon.stop()


async def _told(session: ClientSession, tool: str, given: Json) -> Json:
    result = await session.call_tool(tool, given)
    assert not result.is_error, result
    assert result.structured_content
    return dict(result.structured_content)


@pytest.mark.skipif(
    shutil.which("conformance") is None,
    reason="needs `npm install -g @modelcontextprotocol/conformance@0.1.10`",
)
@pytest.mark.parametrize(
    "scenario",
    [
        "server-initialize",
        "ping",
        "tools-list",
        "tools-call-error",
        "resources-list",
        "prompts-list",
    ],
)
async def test_it_passes_the_scenario_of_the_conformance_suite(home: Home, scenario: str) -> None:
    """Those for what it offers. The suite speaks HTTP alone, so a bridge stands between."""
    daemon = await home.start()
    await daemon.connect()
    command = [sys.executable, "-W", "ignore", BRIDGE, sys.executable, "-m", "agentd", "mcp"]
    bridge = await asyncio.create_subprocess_exec(
        *command, env=home.environ(), stdout=asyncio.subprocess.PIPE
    )
    assert bridge.stdout
    address = f"http://127.0.0.1:{int(await bridge.stdout.readline())}/mcp"
    try:
        run = await asyncio.create_subprocess_exec(
            *("conformance", "server", "--url", address, "--scenario", scenario),
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            said, _ = await run.communicate()
    finally:
        bridge.kill()
        await bridge.wait()
    assert run.returncode == 0, said.decode()
    assert b"0 failed, 0 warnings" in said
    await daemon.stop()
