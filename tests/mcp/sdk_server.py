"""A server of the official SDK: over HTTP on a port of its own choice, which it prints."""

from __future__ import annotations

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("sums", instructions="Adds.")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.resource("note://today")
def today() -> str:
    """What is to be done."""
    return "buy milk"


if "http" in sys.argv:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
else:
    server.run()
