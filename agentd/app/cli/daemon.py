"""`agentd run`, `stop` and `restart`, and the commands of no group that are one call."""

from __future__ import annotations

import asyncio
import os

from agentd.app.cli import foreground
from agentd.app.cli.ask import sockets
from agentd.app.cli.declared import alone
from agentd.app.cli.launch import refuse_system_service
from agentd.app.cli.launch import restart as again
from agentd.app.cli.launch import stop as end
from agentd.app.cli.report import AsJson, ConfigFile, reporting, show
from agentd.core.paths import daemon_places
from agentd.interfaces.commands.status import STATUS
from agentd.interfaces.commands.tool_servers import RESOURCES
from agentd.interfaces.commands.upkeep import UPKEEP

reload = alone(UPKEEP["reload"])
status = alone(STATUS["status"])
resources = alone(RESOURCES["resources"])


def run(config: ConfigFile = None) -> None:
    """Run the daemon in the foreground."""
    foreground.run(config)


def stop(as_json: AsJson = False) -> None:
    """Stop the daemon and wait until it has ended."""
    with reporting(as_json=as_json):
        asyncio.run(end(sockets()))
        show({"stopped": True}, lambda _: "the daemon has stopped", as_json=as_json)


def restart(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Stop the daemon if one runs, and start it."""

    async def change() -> None:
        await refuse_system_service(sockets())
        await again(daemon_places(os.environ, config), config)

    with reporting(as_json=as_json):
        asyncio.run(change())
        show({"restarted": True}, lambda _: "the daemon has restarted", as_json=as_json)
