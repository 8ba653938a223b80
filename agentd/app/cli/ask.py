"""Calls the daemon from a command, and prints the answer, with times for the owner's zone."""

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
from agentd.interfaces.client.connection import DaemonConnection, connect, introduction
from agentd.interfaces.commands.plain import TimeFormatter, folded

QUICK_SECONDS = 30.0
MODEL_SECONDS = 900.0  # commands that wait for a language model
_INTRODUCTION_SECONDS = 30.0


def sockets() -> tuple[Path, ...]:
    """Return the sockets at which this process looks for the daemon."""
    return client_sockets(os.environ)


def answer(
    command: str,
    render: Callable[[Any], str],
    *,
    as_json: bool,
    within: float = QUICK_SECONDS,
    **options: Any,
) -> Any:
    """Call the daemon, print the result (as JSON, or formatted by `render` with times in the
    owner's zone and lines that fit the terminal), and return it. On a failure the process ends with
    the error's exit code.
    """
    with reporting(as_json=as_json):
        result = ask(command, within=within, in_words=not as_json, **options)
        show(result, lambda told: fit_to_terminal(render(told)), as_json=as_json)
    return result


def fit_to_terminal(text: str) -> str:
    """Return `text` wrapped to the terminal's width; unchanged if standard output is no
    terminal.
    """
    return folded(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text


def ask(
    command: str, *, within: float = QUICK_SECONDS, in_words: bool = False, **options: Any
) -> Any:
    """Return the daemon's answer to `_agentd/<command>`; options that are None are left out.
    `in_words` replaces ISO times by words.

    Raises DaemonUnreachable, RemoteError, Busy.
    """
    params = {key: value for key, value in options.items() if value is not None}
    return asyncio.run(_call(sockets(), f"_agentd/{command}", params, within, in_words=in_words))


async def _call(
    sockets: Sequence[Path], method: str, params: dict[str, Any], within: float, *, in_words: bool
) -> Any:
    async with connect(sockets) as connection:
        result = await connection.call(method, params, within=within)
        return (await owners_times(connection)).read(result) if in_words else result


async def owners_times(connection: DaemonConnection) -> TimeFormatter:
    """Return the time formatter for the daemon's zone. Raises RemoteError, Busy."""
    hello = await connection.call(
        "initialize", introduction(deny=True), within=_INTRODUCTION_SECONDS
    )
    return TimeFormatter(SystemClock((hello.get("_meta") or {}).get("agentd/zone", "")))


def agree(question: str, *, yes: bool, ask: bool) -> None:
    """Ask the user for a yes unless `yes` is given; ends the command if he refuses. Raises
    InvalidRequest if nobody can be asked.
    """
    if yes:
        return
    if not (ask and sys.stdin.isatty()):
        raise InvalidRequest("this needs a yes", cure="add --yes")
    if not typer.confirm(question):
        raise typer.Exit(1)
