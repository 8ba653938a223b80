"""`agentd chat`, `send` and `acp`: the ways to talk."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentd.app.cli.ask import owners_times, sockets
from agentd.app.cli.report import AsJson, reporting, say, show
from agentd.core.errors import InvalidRequest
from agentd.core.paths import chat_history

Wait = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How long messages wait for a model's service that is away, such as 30m.",
    ),
]
Session = Annotated[str, typer.Option(metavar="KEY", help="The session's key.")]


def chat(session: Session = "main", wait: Wait = None) -> None:
    """Talk with the agent. `/quit` or Ctrl-D leaves, Ctrl-C cancels the running turn."""
    with reporting():
        raise typer.Exit(converse(session, wait))


def send(
    text: Annotated[str, typer.Argument(help="The message; `-` is standard input.")],
    session: Session = "main",
    message_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Your name for the message: repeating it runs it once."),
    ] = None,
    image: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="An image to show with it; may be given again."),
    ] = None,
    wait: Wait = None,
    as_json: AsJson = False,
) -> None:
    """Send one message and print the reply."""
    import asyncio

    from agentd.app.cli.piped import send as deliver
    from agentd.app.cli.texts import piped
    from agentd.interfaces.client.conversation import read_image

    with reporting(as_json=as_json):
        images = [read_image(path) for path in image or ()]
        message = piped().removesuffix("\n") if text == "-" else text
        turn = asyncio.run(
            deliver(sockets(), session, message, message_id, images, seconds(wait) or 0)
        )
        show(turn, lambda result: str(result["text"]), as_json=as_json)


def acp(
    bind: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Let nothing exist but this session: for group chats."),
    ] = None,
) -> None:
    """Speak the Agent Client Protocol on standard input and output, for editors and bridges."""
    import asyncio

    from agentd.app.cli.bridge import carry

    with reporting():
        asyncio.run(carry(sockets(), bind))


def mcp() -> None:
    """Let other agents read the memory: a server of the Model Context Protocol on standard streams."""
    import asyncio

    from agentd.interfaces.mcp.reaching import check_installed

    with reporting():
        check_installed("agentd mcp")
        from agentd.app.cli.memory_server import serve

        asyncio.run(serve(sockets()))


def seconds(wait: str | None) -> int | None:
    """A duration in whole seconds, None for none. Raises InvalidRequest."""
    from agentd.core.durations import parse_duration

    if wait is None:
        return None
    try:
        return int(parse_duration(wait).total_seconds())
    except ValueError as error:
        raise InvalidRequest(
            f"--wait {wait!r}: {error}", cure="give it as 45s, 30m or 6h"
        ) from None


def converse(session: str, wait: str | None = None) -> int:
    """Chat on a terminal, or one message a line from a pipe; returns the exit code. Raises
    InvalidRequest.
    """
    import asyncio

    patience = seconds(wait)

    if not sys.stdin.isatty():
        from agentd.app.cli.piped import answer_lines

        return asyncio.run(answer_lines(sockets(), session, sys.stdin.fileno(), patience or 0))
    asyncio.run(_chat(session, patience))
    return 0


async def _chat(session: str, wait: int | None) -> None:
    import shutil

    from agentd.app.chat.chat import Chat
    from agentd.app.chat.painter import Painter
    from agentd.app.chat.screen import Screen
    from agentd.app.chat.slash import Catalog
    from agentd.app.chat.statusline import StatusLine
    from agentd.app.chat.terminal import Terminal, history_in
    from agentd.interfaces.client.connection import connected
    from agentd.interfaces.commands.plain import is_plain

    async with connected(sockets()) as connection:
        times = await owners_times(connection)
    say(f"Session {session}. Ctrl-C cancels a running turn, Ctrl-D leaves, /help says more.")
    catalog, status = Catalog(), StatusLine()
    plain = is_plain(os.environ) or not sys.stdout.isatty()
    screen = Screen() if plain else Painter(shutil.get_terminal_size, times.clock)
    history = history_in(chat_history(os.environ), times.clock)
    keyboard = Terminal(catalog, status.text, history, raw=not plain)
    chat = Chat(keyboard, screen, times, catalog=catalog, status=status, wait=wait)
    await chat.run(sockets(), session)
