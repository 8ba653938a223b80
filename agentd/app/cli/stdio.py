"""`agentd acp` and `agentd mcp`: for editors and other agents, on standard input and output."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.bridge import carry
from agentd.app.cli.report import reporting
from agentd.interfaces.mcp.reaching import check_installed


def acp(
    bind: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Let nothing exist but this session: for group chats."),
    ] = None,
) -> None:
    """Speak the Agent Client Protocol on standard input and output, for editors and bridges."""
    with reporting():
        asyncio.run(carry(sockets(), bind))


def mcp() -> None:
    """Let other agents use the memory: a server of the Model Context Protocol on standard streams."""
    with reporting():
        check_installed("agentd mcp")
        from agentd.app.cli.memory_server import serve

        asyncio.run(serve(sockets()))
