"""All commands under one name."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Annotated, Any

import typer

import agentd
from agentd.cli import (
    alerts,
    backup,
    config,
    daemon,
    doctor,
    exchange,
    export,
    facts,
    graph,
    heartbeat,
    interrupts,
    jobs,
    logs,
    memory,
    migrate,
    reload,
    service,
    sessions,
    setup,
    states,
    talk,
    zero,
)
from agentd.cli.group import Group
from agentd.cli.report import note, say
from agentd.cli.streams import Outputs

app = Group("A personal agent that stays on: it talks, remembers and wakes up by itself.")


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


app.command()(setup.up)
app.command()(setup.init)
app.command()(daemon.run)
app.command()(daemon.stop)
app.command()(daemon.restart)
app.command()(reload.reload)
app.command()(daemon.status)
app.command()(doctor.doctor)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(logs.logs)
app.command()(talk.chat)
app.command()(talk.send)
app.command()(talk.acp)
app.command()(export.export)
app.add_typer(sessions.app, name="sessions")
app.add_typer(memory.app, name="memory")
facts.app.command("query")(graph.query)
facts.app.command("graph")(graph.graph)
facts.app.command("run")(zero.run)
facts.app.command("compile")(zero.compile_statements)
for command in (
    states.snapshot,
    states.graph_changes,
    states.apply,
    exchange.share,
    exchange.unshare,
    exchange.send,
    exchange.take,
    exchange.import_graph,
    exchange.export_graph,
    exchange.chain,
):
    facts.app.command()(command)
app.add_typer(facts.app, name="facts")
app.add_typer(heartbeat.app, name="heartbeat")
app.add_typer(jobs.app, name="jobs")
app.add_typer(alerts.app, name="alerts")
app.add_typer(migrate.app, name="import")
app.add_typer(service.app, name="service")
app.add_typer(config.app, name="config")


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
