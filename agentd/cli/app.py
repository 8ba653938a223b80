"""All commands under one name."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

import agentd
from agentd.cli import declared, interrupts
from agentd.cli.group import Group
from agentd.cli.report import note, say
from agentd.cli.streams import Outputs
from agentd.commands import declaration

# Each command line loads what it names and nothing else: all together cost more than an answer.
_PLACES = {
    "up": "agentd.cli.setup:up",
    "init": "agentd.cli.setup:init",
    "run": "agentd.cli.daemon:run",
    "stop": "agentd.cli.daemon:stop",
    "restart": "agentd.cli.daemon:restart",
    "reload": "agentd.cli.reload:reload",
    "status": "agentd.cli.daemon:status",
    "doctor": "agentd.cli.doctor:doctor",
    "backup": "agentd.cli.backup:backup",
    "restore": "agentd.cli.backup:restore",
    "logs": "agentd.cli.logs:logs",
    "chat": "agentd.cli.talk:chat",
    "send": "agentd.cli.talk:send",
    "acp": "agentd.cli.talk:acp",
    "export": "agentd.cli.export:export",
    "sessions": "agentd.cli.sessions:app",
    "memory": "agentd.cli.memory:app",
    "facts": "agentd.cli.facts:app",
    "heartbeat": "agentd.cli.heartbeat:app",
    "jobs": "agentd.commands.jobs:JOBS",
    "alerts": "agentd.cli.alerts:app",
    "import": "agentd.cli.migrate:app",
    "service": "agentd.cli.service:app",
    "config": "agentd.cli.config:app",
}


def _loaded(place: str) -> Any:
    """The function, or the group, at "package.module:name"."""
    module, _, name = place.partition(":")
    found = getattr(import_module(module), name)
    return declared.grouped(found) if isinstance(found, declaration.Group) else found


app = Group(
    "A personal agent that stays on: it talks, remembers and wakes up by itself.",
    {name: partial(_loaded, place) for name, place in _PLACES.items()},
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"agentd {agentd.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """A personal agent that stays on: it talks, remembers and wakes up by itself."""


def main(commands: Callable[..., Any] = app) -> None:
    """Run the command that the arguments name; never returns. An output that cannot be written is one
    line on standard error and exit code 1.

    `commands` is what runs them: `app`, or what typer has made of it before.
    """
    outputs = Outputs()
    interrupts.unwind()
    try:
        commands(prog_name="agentd")
    except (KeyboardInterrupt, SystemExit, Exception) as end:
        fault = outputs.fault()
        if _is_interrupted(end):
            interrupts.leave()
        if fault is None:
            raise
        if fault.errno != errno.EPIPE:  # whoever read it has enough
            note(f"error: the output cannot be written: {fault.strerror}")
        raise SystemExit(1) from None


def _is_interrupted(end: BaseException) -> bool:
    """Whether Ctrl-C ended a command, which typer says with an exit code."""
    return isinstance(end, KeyboardInterrupt) or (
        isinstance(end, SystemExit) and end.code == interrupts.STATUS
    )
