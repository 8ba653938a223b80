"""`agentd chat` and `agentd send`, and the chat that `agentd up` opens."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.piped import answer_lines, tell_ending
from agentd.app.cli.piped import send as deliver
from agentd.app.cli.report import AsJson, reporting, show
from agentd.app.cli.text_files import read_stdin
from agentd.core.errors import InvalidRequest
from agentd.core.times import parse_duration
from agentd.interfaces.client.attachments import read_image

Wait = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How long messages wait for a model's service that is away, such as 30m.",
    ),
]


def _named(key: str) -> str:
    if not key.strip():
        raise typer.BadParameter("it is empty; name one like main or chat:NAME")
    return key


Session = Annotated[str, typer.Option(metavar="KEY", help="The session's key.", callback=_named)]


def chat(session: Session = "main", wait: Wait = None) -> None:
    """Talk with the agent. `/quit` or Ctrl-D leaves, Ctrl-C cancels the running turn."""
    with reporting():
        raise typer.Exit(converse(session, wait))


def seconds(wait: str | None) -> int | None:
    """Return a duration such as "30m" in whole seconds; None for None. Raises InvalidRequest."""
    if wait is None:
        return None
    try:
        return int(parse_duration(wait).total_seconds())
    except ValueError as error:
        raise InvalidRequest(
            f"--wait {wait!r}: {error}", cure="give it as 45s, 30m or 6h"
        ) from None


def converse(session: str, wait: str | None = None) -> int:
    """Chat in a session: on the terminal, or with one message a line if standard input is a pipe.
    Return the exit code. Raises AgentdError.
    """
    patience = seconds(wait)
    if not sys.stdin.isatty():
        return asyncio.run(answer_lines(sockets(), session, sys.stdin.fileno(), patience or 0))
    from agentd.app.cli.terminal_chat import chat_here

    asyncio.run(chat_here(session, patience))
    return 0


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
    """Send one message and print the reply.

    Ctrl-C does not end the turn: the daemon goes on with it, and `agentd sessions cancel KEY` ends
    it.
    """
    with reporting(as_json=as_json):
        images = [read_image(path) for path in image or ()]
        message = read_stdin().removesuffix("\n") if text == "-" else text
        if not (message.strip() or images):
            what = "standard input" if text == "-" else "text"
            raise InvalidRequest(f"{what}: is empty", cure="write a message, or add --image PATH")
        turn = asyncio.run(
            deliver(sockets(), session, message, message_id, images, seconds(wait) or 0)
        )
        show(turn, lambda result: str(result["text"]), as_json=as_json)
        if not as_json:  # the JSON has the `stop_reason`
            tell_ending(turn)
