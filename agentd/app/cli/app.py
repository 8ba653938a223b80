"""The `agentd` command: all commands in one group."""

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
from agentd.app.cli.group import COMPLETION_VARIABLE, CommandGroup, DeferredCommand
from agentd.app.cli.report import note, say
from agentd.app.cli.streams import Outputs

# Each command line loads what it names and nothing else: all together cost more than an answer.
# What they are said to do is said here, too, so that the list of them loads none.
_COMMANDS = {
    "up": (
        "agentd.app.cli.setup:up",
        "Make what is missing, start the daemon if none runs, and open the chat.",
    ),
    "init": (
        "agentd.app.cli.setup:init",
        "Make the configuration and the workspace; what exists is kept.",
    ),
    "run": ("agentd.app.cli.daemon:run", "Run the daemon in the foreground."),
    "stop": ("agentd.app.cli.daemon:stop", "Stop the daemon and wait until it has ended."),
    "restart": ("agentd.app.cli.daemon:restart", "Stop the daemon if one runs, and start it."),
    "reload": (
        "agentd.interfaces.commands.upkeep:UPKEEP",
        "Let the daemon read its configuration again; says what needs a restart.",
    ),
    "status": ("agentd.interfaces.commands.status:STATUS", "Show how the daemon fares."),
    "doctor": (
        "agentd.app.cli.doctor:doctor",
        "Check everything that can be wrong; exit code 1 if something does not work.",
    ),
    "backup": (
        "agentd.app.cli.backup:backup",
        "Write everything into one file while the daemon runs, and check it.",
    ),
    "restore": ("agentd.app.cli.backup:restore", "Put a backup in place; the daemon must not run."),
    "logs": ("agentd.app.cli.logs:logs", "Show the daemon's log, one record a line."),
    "chat": ("agentd.app.cli.talk:chat", "Talk with the agent."),
    "send": ("agentd.app.cli.talk:send", "Send one message and print the reply."),
    "acp": (
        "agentd.app.cli.stdio:acp",
        "Speak the Agent Client Protocol on standard input and output, for editors and bridges.",
    ),
    "mcp": (
        "agentd.app.cli.mcp:app",
        (
            "Let other agents use the memory: a server of the Model Context Protocol "
            "on standard streams."
        ),
    ),
    "resources": (
        "agentd.interfaces.commands.tool_servers:RESOURCES",
        "List what a server of tools offers to be read.",
    ),
    "export": (
        "agentd.app.cli.export:export",
        (
            "Write everything that is yours as plain files: workspace, transcripts, "
            "alerts, beats, costs."
        ),
    ),
    "completion": (
        "agentd.app.cli.completion:completion",
        "Print what makes a shell complete commands and options.",
    ),
}
_GROUPS = {
    "sessions": ("agentd.app.cli.sessions:app", "See, move and shorten conversations."),
    "memory": ("agentd.app.cli.memory:app", "Read, write and search what the agent remembers."),
    "facts": ("agentd.app.cli.facts:app", "See and change what the agent knows about you."),
    "heartbeat": (
        "agentd.app.cli.heartbeat:app",
        "Run the heartbeat, and see why it spoke or kept silent.",
    ),
    "jobs": ("agentd.app.cli.jobs:app", "Have something said or done at set times."),
    "alerts": ("agentd.app.cli.alerts:app", "See, follow and acknowledge alerts."),
    "import": (
        "agentd.app.cli.migrate:app",
        "Move in from another agent; nothing that is yours is overwritten.",
    ),
    "service": ("agentd.app.cli.service:app", "Have systemd start the daemon and watch over it."),
    "config": ("agentd.app.cli.config:app", "Check, show and change the configuration."),
}


def _deferred_group(place: str, summary: str) -> CommandGroup:
    return CommandGroup(summary, inside=partial(declared.load_command, place))


app = CommandGroup(
    "A personal agent that stays on: it talks, remembers and wakes up by itself.",
    {
        **{
            name: DeferredCommand(partial(declared.load_command, place, name), summary)
            for name, (place, summary) in _COMMANDS.items()
        },
        **{
            name: DeferredCommand(partial(_deferred_group, place, summary), summary)
            for name, (place, summary) in _GROUPS.items()
        },
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
    """Run the command that the arguments name; never returns. If the output cannot be written, that
    is one line on standard error and exit code 1.

    `commands` is what runs them: `app`, or the click command that typer made of it.

    Raises SystemExit with the command's exit code.
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
    """Return whether Ctrl-C ended the command; typer reports that as an exit code."""
    return isinstance(end, KeyboardInterrupt) or (
        isinstance(end, SystemExit) and end.code == streams.STATUS
    )
