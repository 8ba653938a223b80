"""The `agentd` command: all commands in one group."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

import agentd
from agentd.app.cli import streams
from agentd.app.cli.group import COMPLETION_VARIABLE, CommandGroup, deferred
from agentd.app.cli.report import note, say
from agentd.app.cli.streams import Outputs

# Each command line loads what it names and nothing else: all together cost more than an answer.
# What they are said to do is said here, too, so that the list of them loads none.
_COMMANDS = {
    "up": ("setup:up", "Make what is missing, start the daemon if none runs, and open the chat."),
    "init": ("setup:init", "Make the configuration and the workspace; what exists is kept."),
    "run": ("daemon:run", "Run the daemon in the foreground."),
    "stop": ("daemon:stop", "Stop the daemon and wait until it has ended."),
    "restart": ("daemon:restart", "Stop the daemon if one runs, and start it."),
    "reload": (
        "daemon:reload",
        "Let the daemon read its configuration again; says what needs a restart.",
    ),
    "status": ("daemon:status", "Show how the daemon fares."),
    "doctor": (
        "doctor:doctor",
        "Check everything that can be wrong; exit code 1 if something does not work.",
    ),
    "backup": (
        "backup:backup",
        "Write everything into one file while the daemon runs, and check it.",
    ),
    "restore": ("backup:restore", "Put a backup in place; the daemon must not run."),
    "logs": ("logs:logs", "Show the daemon's log, one record a line."),
    "chat": ("talk:chat", "Talk with the agent."),
    "send": ("talk:send", "Send one message and print the reply."),
    "acp": (
        "stdio:acp",
        "Speak the Agent Client Protocol on standard input and output, for editors and bridges.",
    ),
    "mcp": (
        "mcp:app",
        (
            "Let other agents use the memory: a server of the Model Context Protocol "
            "on standard streams."
        ),
    ),
    "resources": ("daemon:resources", "List what a server of tools offers to be read."),
    "export": (
        "export:export",
        (
            "Write everything that is yours as plain files: workspace, transcripts, "
            "alerts, beats, costs."
        ),
    ),
    "completion": (
        "completion:completion",
        "Print what makes a shell complete commands and options.",
    ),
    "sessions": ("sessions:app", "See, move and shorten conversations."),
    "memory": ("memory:app", "Read, write and search what the agent remembers."),
    "facts": ("facts:app", "See and change what the agent knows about you."),
    "heartbeat": ("heartbeat:app", "Run the heartbeat, and see why it spoke or kept silent."),
    "jobs": ("jobs:app", "Have something said or done at set times."),
    "alerts": ("alerts:app", "See, follow and acknowledge alerts."),
    "import": ("migrate:app", "Move in from another agent; nothing that is yours is overwritten."),
    "service": ("service:app", "Have systemd start the daemon and watch over it."),
    "config": ("config:app", "Check, show and change the configuration."),
}

app = CommandGroup(
    "A personal agent that stays on: it talks, remembers and wakes up by itself.",
    deferred(_COMMANDS),
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
