"""`agentd mcp`, asked by the client of the official SDK, which is not ours."""

from __future__ import annotations

import json
import sys
from typing import Any

from mcp import StdioServerParameters
from mcp.client.session import ClientSession
from mcp.client.stdio import stdio_client

from tests.e2e.harness import Home

Json = dict[str, Any]


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
        assert sorted(tools) == ["facts", "memory_read", "memory_search"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        found = await _told(session, "memory_search", {"query": "where is the apple tree"})
        assert found["results"][0]["path"] == "memory/garden.md"
        text = await _told(session, "memory_read", {"path": "memory/garden.md", "first": 3})
        assert "behind the shed" in json.dumps(text)
        facts = await _told(session, "facts", {})
        assert [fact["text"] for fact in facts["facts"]] == ["The user's dog is called Rex."]
        missing = await session.call_tool("memory_read", {"path": "../state/state.db"})
        assert missing.is_error
        await daemon.stop()
        gone = await session.call_tool("facts", {})
        assert gone.is_error
        assert "agentd" in json.dumps(gone.model_dump(mode="json"))


async def _told(session: ClientSession, tool: str, given: Json) -> Json:
    result = await session.call_tool(tool, given)
    assert not result.is_error, result
    assert result.structured_content
    return dict(result.structured_content)
