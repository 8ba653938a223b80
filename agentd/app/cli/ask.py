"""One question to the daemon, and its answer with times as the owner's clock shows them."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from agentd.app.cli.report import reporting, show
from agentd.core.clock import SystemClock
from agentd.core.errors import InvalidRequest
from agentd.core.paths import client_sockets
from agentd.interfaces.client.connection import DaemonConnection, connected, introduction
from agentd.interfaces.commands.plain import Times, folded

QUICK_SECONDS = 30.0
MODEL_SECONDS = 900.0  # commands that wait for a language model
_INTRODUCTION_SECONDS = 30.0


def sockets() -> tuple[Path, ...]:
    """Where this process looks for the daemon."""
    return client_sockets(os.environ)


def answer(
    command: str,
    render: Callable[[Any], str],
    *,
    as_json: bool,
    within: float = QUICK_SECONDS,
    **options: Any,
) -> Any:
    """Ask the daemon, print what it says, and return it: as JSON, or as `render` words it, where times
    are those of the owner's clock and lines fit the terminal. Ends with the exit code that stands for a
    failure.
    """
    with reporting(as_json=as_json):
        result = ask(command, within=within, in_words=not as_json, **options)
        show(result, lambda told: fitted(render(told)), as_json=as_json)
    return result


def fitted(text: str) -> str:
    """`text` with lines that fit the terminal; as it is where there is none."""
    return folded(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text


def ask(
    command: str, *, within: float = QUICK_SECONDS, in_words: bool = False, **options: Any
) -> Any:
    """What the daemon answers to `_agentd/<command>`, times in words if wanted; options that are
    None are left out.

    Raises DaemonUnreachable, RemoteError, Busy.
    """
    params = {key: value for key, value in options.items() if value is not None}
    return answered(sockets(), f"_agentd/{command}", params, within, in_words=in_words)


def answered(
    sockets: Sequence[Path], method: str, params: dict[str, Any], within: float, *, in_words: bool
) -> Any:
    """What the daemon answers, times in words if wanted. Raises DaemonUnreachable, RemoteError, Busy."""
    return asyncio.run(_call(sockets, method, params, within, in_words=in_words))


async def owners_times(connection: DaemonConnection) -> Times:
    """The words for times in the zone of the daemon that is asked. Raises RemoteError, Busy."""
    hello = await connection.call(
        "initialize", introduction(deny=True), within=_INTRODUCTION_SECONDS
    )
    return Times(SystemClock((hello.get("_meta") or {}).get("agentd/zone", "")))


async def _call(
    sockets: Sequence[Path], method: str, params: dict[str, Any], within: float, *, in_words: bool
) -> Any:
    async with connected(sockets) as connection:
        result = await connection.call(method, params, within=within)
        return (await owners_times(connection)).read(result) if in_words else result


def agree(question: str, *, yes: bool, ask: bool) -> None:
    """Return when the user wants it; ends the command where he does not. Raises InvalidRequest where
    nobody can be asked.
    """
    if yes:
        return
    if not (ask and sys.stdin.isatty()):
        raise InvalidRequest("this needs a yes", cure="add --yes")
    if not typer.confirm(question):
        raise typer.Exit(1)
