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
    "reload": "agentd.commands.upkeep:UPKEEP",
    "status": "agentd.commands.status:STATUS",
    "doctor": "agentd.cli.doctor:doctor",
    "backup": "agentd.cli.backup:backup",
    "restore": "agentd.cli.backup:restore",
    "logs": "agentd.cli.logs:logs",
    "chat": "agentd.cli.talk:chat",
    "send": "agentd.cli.talk:send",
    "acp": "agentd.cli.talk:acp",
    "mcp": "agentd.cli.talk:mcp",
    "export": "agentd.cli.export:export",
}
_GROUPS = {
    "sessions": ("agentd.cli.sessions:app", "See, move and shorten conversations."),
    "memory": ("agentd.cli.memory:app", "Read, write and search what the agent remembers."),
    "facts": ("agentd.cli.facts:app", "See and change what the agent knows about you."),
    "heartbeat": (
        "agentd.cli.heartbeat:app",
        "Run the heartbeat, and see why it spoke or kept silent.",
    ),
    "jobs": ("agentd.commands.jobs:JOBS", "Have something said or done at set times."),
    "alerts": ("agentd.cli.alerts:app", "See, follow and acknowledge alerts."),
    "import": (
        "agentd.cli.migrate:app",
        "Move in from another agent; nothing that is yours is overwritten.",
    ),
    "service": ("agentd.cli.service:app", "Have systemd start the daemon and watch over it."),
    "config": ("agentd.cli.config:app", "Check and show the configuration."),
}


def _loaded(name: str, place: str) -> Any:
    """The command, or the group, at "package.module:attribute"."""
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, declaration.Group):
        return found
    return declared.grouped(found) if found.name else declared.alone(found[name])


def _grouped(name: str, place: str, summary: str) -> Group:
    return Group(summary, inside=partial(_loaded, name, place))


app = Group(
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
