"""`agentd mcp`: the memory for other agents, on standard streams; below it the logins to servers of tools."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from agentd.app.cli.ask import sockets
from agentd.app.cli.declared import add_all
from agentd.app.cli.group import CommandGroup
from agentd.app.cli.redirect import log_in
from agentd.app.cli.report import note, reporting, show
from agentd.interfaces.commands.logins import LOGINS, logged_in
from agentd.interfaces.commands.plain import visible
from agentd.interfaces.mcp.reaching import check_installed


def _login(
    given: dict[str, Any],
    *,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65_535,
            help="The port that the browser comes back to; 0 is any that is free.",
        ),
    ] = 0,
    as_json: bool,
) -> None:
    def tell(url: str, host: str) -> None:
        note(visible(f"Log in at {host}: open this address in a browser of this machine."))
        note(visible(url))

    with reporting(as_json=as_json):
        show(
            asyncio.run(log_in(sockets(), given["server"], port, tell)), logged_in, as_json=as_json
        )


app = CommandGroup(
    "Let other agents use the memory: a server of the Model Context Protocol on standard streams."
    " Below it: logins to servers of tools."
)
add_all(app, LOGINS, {"login": _login})


@app.callback(invoke_without_command=True, no_args_is_help=False)
def mcp(context: typer.Context) -> None:
    """Serve, unless one of the commands below is meant."""
    if context.invoked_subcommand is not None:
        return
    with reporting():
        check_installed("agentd mcp")
        from agentd.app.cli.memory_server import serve

        asyncio.run(serve(sockets()))
