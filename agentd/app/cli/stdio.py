"""`agentd acp`: for editors, on standard input and output."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.bridge import carry
from agentd.app.cli.report import reporting


def acp(
    bind: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Let nothing exist but this session: for group chats."),
    ] = None,
) -> None:
    """Speak the Agent Client Protocol on standard input and output, for editors and bridges."""
    with reporting():
        asyncio.run(carry(sockets(), bind))
