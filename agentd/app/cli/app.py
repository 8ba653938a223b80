"""All commands under one name."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

import agentd
from agentd.app.cli import declared, streams
from agentd.app.cli.group import COMPLETION_VARIABLE, CommandGroup
from agentd.app.cli.report import note, say
from agentd.app.cli.streams import Outputs
from agentd.interfaces.commands import declaration

# Each command line loads what it names and nothing else: all together cost more than an answer.
_PLACES = {
    "up": "agentd.app.cli.setup:up",
    "init": "agentd.app.cli.setup:init",
    "run": "agentd.app.cli.daemon:run",
    "stop": "agentd.app.cli.daemon:stop",
    "restart": "agentd.app.cli.daemon:restart",
    "reload": "agentd.interfaces.commands.upkeep:UPKEEP",
    "status": "agentd.interfaces.commands.status:STATUS",
    "doctor": "agentd.app.cli.doctor:doctor",
    "backup": "agentd.app.cli.backup:backup",
    "restore": "agentd.app.cli.backup:restore",
    "logs": "agentd.app.cli.logs:logs",
    "chat": "agentd.app.cli.talk:chat",
    "send": "agentd.app.cli.talk:send",
    "acp": "agentd.app.cli.talk:acp",
    "mcp": "agentd.app.cli.talk:mcp",
    "export": "agentd.app.cli.export:export",
    "completion": "agentd.app.cli.completion:completion",
}
_GROUPS = {
    "sessions": ("agentd.app.cli.sessions:app", "See, move and shorten conversations."),
    "memory": ("agentd.app.cli.memory:app", "Read, write and search what the agent remembers."),
    "facts": ("agentd.app.cli.facts:app", "See and change what the agent knows about you."),
    "heartbeat": (
        "agentd.app.cli.heartbeat:app",
        "Run the heartbeat, and see why it spoke or kept silent.",
    ),
    "jobs": ("agentd.interfaces.commands.jobs:JOBS", "Have something said or done at set times."),
    "alerts": ("agentd.app.cli.alerts:app", "See, follow and acknowledge alerts."),
    "import": (
        "agentd.app.cli.migrate:app",
        "Move in from another agent; nothing that is yours is overwritten.",
    ),
    "service": ("agentd.app.cli.service:app", "Have systemd start the daemon and watch over it."),
    "config": ("agentd.app.cli.config:app", "Check and show the configuration."),
}


def _loaded(name: str, place: str) -> Any:
    """The command, or the group, at "package.module:attribute"."""
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, declaration.Group):
        return found
    return declared.grouped(found) if found.name else declared.alone(found[name])


def _grouped(name: str, place: str, summary: str) -> CommandGroup:
    return CommandGroup(summary, inside=partial(_loaded, name, place))


app = CommandGroup(
    "A personal agent that stays on: it talks, remembers and wakes up by itself.",
    {
        **{name: partial(_loaded, name, place) for name, place in _PLACES.items()},
        **{name: partial(_grouped, name, *told) for name, told in _GROUPS.items()},
    },
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

    Raises SystemExit with the code that the command ended with.
    """
    outputs = Outputs()
    streams.unwind()
    if COMPLETION_VARIABLE in os.environ:
        import_module("agentd.app.cli.completion").answer_shells()
    try:
        commands(prog_name="agentd")
    except (KeyboardInterrupt, SystemExit, Exception) as end:
        fault = outputs.fault()
        if _is_interrupted(end):
            streams.leave()
        if fault is None:
            raise
        if fault.errno != errno.EPIPE:  # whoever read it has enough
            note(f"error: the output cannot be written: {fault.strerror}")
        raise SystemExit(1) from None


def _is_interrupted(end: BaseException) -> bool:
    """Whether Ctrl-C ended a command, which typer says with an exit code."""
    return isinstance(end, KeyboardInterrupt) or (
        isinstance(end, SystemExit) and end.code == streams.STATUS
    )
