"""`agentd send`: one message, one reply."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.piped import send as deliver
from agentd.app.cli.piped import tell_ending
from agentd.app.cli.report import AsJson, reporting, show
from agentd.app.cli.talk import Session, Wait, seconds
from agentd.app.cli.texts import piped
from agentd.interfaces.client.attachments import read_image


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
    with reporting(as_json=as_json):
        images = [read_image(path) for path in image or ()]
        message = piped().removesuffix("\n") if text == "-" else text
        turn = asyncio.run(
            deliver(sockets(), session, message, message_id, images, seconds(wait) or 0)
        )
        show(turn, lambda result: str(result["text"]), as_json=as_json)
        if not as_json:  # which says it as `stop_reason`
            tell_ending(turn)
