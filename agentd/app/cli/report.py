"""Printing the results and failures of commands, as text or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from agentd.core.errors import AgentdError
from agentd.interfaces.client.remote_error import exit_status
from agentd.interfaces.commands.plain import revealed, visible

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigPath = Annotated[
    Path | None, typer.Option("--config", help="Another configuration file.", dir_okay=False)
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Another configuration file.", exists=True, dir_okay=False),
]


@contextmanager
def reporting(*, as_json: bool = False) -> Iterator[None]:
    """Print an AgentdError of the body, as text or JSON, and raise typer.Exit with the error's exit
    code.
    """
    try:
        yield
    except AgentdError as error:
        fail(error, as_json=as_json)
        raise typer.Exit(exit_status(error)) from error


def fail(error: AgentdError, *, as_json: bool = False) -> None:
    """Print a failure: JSON on stdout, text on stderr."""
    if as_json:
        told = {"code": error.reason, "message": error.message, "cure": error.cure}
        say(as_line({"error": told}))
        return
    note(f"error: {error.message}")
    if error.cure:
        note(f"→ {error.cure}")


def note(text: str) -> None:
    """Print text that is no result on stderr, on a terminal without control characters."""
    print(_harmless(text, sys.stderr), file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Print a result on stdout. Commands print there only by this function: on a terminal it
    removes control characters, which text by others (titles, notes) may contain; a pipe gets the
    text unchanged.
    """
    print(_harmless(text, sys.stdout), flush=True)


def show(result: Any, render: Callable[[Any], str], *, as_json: bool) -> None:
    """Print a result, as JSON or as the text that `render` makes of it; "" is not printed."""
    text = as_line(result) if as_json else render(result)
    if text:
        say(text)


def as_line(value: Any) -> str:
    """Return the value as one line of JSON, in ASCII if the encoding of stdout is not Unicode."""
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    line = json.dumps(value, ensure_ascii=not is_unicode)
    return revealed(line) if sys.stdout.isatty() else line  # whose escapes are those of JSON


def _harmless(text: str, stream: TextIO) -> str:
    return visible(text) if stream.isatty() else text
