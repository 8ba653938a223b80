"""How commands print results and failures, for people and for programs."""

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
    """Turn an error of agentd into words (or JSON) and the exit code that stands for it.

    Raises typer.Exit with that code.
    """
    try:
        yield
    except AgentdError as error:
        fail(error, as_json=as_json)
        raise typer.Exit(exit_status(error)) from error


def fail(error: AgentdError, *, as_json: bool = False) -> None:
    """Tell a failure: JSON goes to stdout, words to stderr."""
    if as_json:
        told = {"code": error.reason, "message": error.message, "cure": error.cure}
        say(as_line({"error": told}))
        return
    note(f"error: {error.message}")
    if error.cure:
        note(f"→ {error.cure}")


def note(text: str) -> None:
    """A line beside the results, on stderr."""
    print(_harmless(text, sys.stderr), file=sys.stderr, flush=True)


def say(text: str) -> None:
    """A line of the results, on stdout. Commands print nothing there but with this: what others wrote,
    titles and notes too, does not steer a terminal, and a pipe gets it as it is.
    """
    print(_harmless(text, sys.stdout), flush=True)


def show(result: Any, render: Callable[[Any], str], *, as_json: bool) -> None:
    """Print a result: as JSON, or as `render` words it."""
    text = as_line(result) if as_json else render(result)
    if text:
        say(text)


def as_line(value: Any) -> str:
    """The value as one line of JSON, in plain letters where the output has no others."""
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    line = json.dumps(value, ensure_ascii=not is_unicode)
    return revealed(line) if sys.stdout.isatty() else line  # JSON spells them the same way


def _harmless(text: str, stream: TextIO) -> str:
    return visible(text) if stream.isatty() else text
