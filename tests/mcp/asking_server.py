"""A server of the official SDK that asks its user in the middle of a call."""

from __future__ import annotations

import socket
import sys
from typing import Literal

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field

server = MCPServer("tables")


class Table(BaseModel):
    """What the restaurant wants to know."""

    name: str = Field(description="on whose name")
    guests: int = 2
    room: Literal["inside", "garden"] = "inside"
    window: bool = False


@server.tool()
async def book(day: str, context: Context, times: int = 1) -> str:
    """Book a table."""
    said = ""
    for _ in range(times):
        answer = await context.elicit(f"A table for {day}?", Table)
        data = answer.data.model_dump() if answer.action == "accept" else {}
        said = f"{answer.action} {data}"
    return said


if "http" in sys.argv:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
    uvicorn.Server(config).run(sockets=[listening])
else:
    server.run()
