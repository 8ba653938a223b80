"""Calls the daemon from a command, and prints the answer."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from agentd.app.cli.report import reporting, show
from agentd.core.errors import InvalidRequest
from agentd.core.paths import client_sockets
from agentd.interfaces.commands.plain import folded

QUICK_SECONDS = 30.0
MODEL_SECONDS = 900.0  # commands that wait for a language model


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
    # Not before a question is asked: the client makes `agentd --help` half as slow again.
    from agentd.app.cli.daemon_call import call_daemon

    params = {key: value for key, value in options.items() if value is not None}
    return call_daemon(sockets(), f"_agentd/{command}", params, within, in_words=in_words)


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
