"""What `resources` says of a server that offers none."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentd.core.errors import NotFound
from agentd.core.health import Problem
from agentd.interfaces.commands.tool_servers import ResourceCommands


@dataclass
class Server:
    name: str
    has_resources: bool = False
    fails: bool = False

    async def resources(self):
        return ()

    def problems(self):
        text = f"the MCP server {self.name} failed: it ended"
        return (Problem("mcp_ended", text, "see its log"),) if self.fails else ()


@pytest.mark.parametrize(
    ("name", "text", "cure"),
    [
        ("nobody", "it is not configured", "these servers are: notes, dead, plain"),
        ("dead", "the MCP server dead failed: it ended", "see its log"),
        ("plain", "no server 'plain' offers resources", "those that do: notes"),
    ],
)
async def test_why_a_server_offers_no_resources_is_told(name: str, text: str, cure: str) -> None:
    servers = [Server("notes", has_resources=True), Server("dead", fails=True), Server("plain")]
    with pytest.raises(NotFound) as caught:
        await ResourceCommands(servers).resources(name)
    assert text in caught.value.message
    assert caught.value.cure == cure
