"""`agentd alerts`: the daemon's alerts as they come, and one when it is the daemon that is missing."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import typer

from agentd.app.cli.declared import grouped
from agentd.app.cli.report import AsJson, ConfigFile, reporting, show
from agentd.core.paths import daemon_places
from agentd.interfaces.commands.alerts import ALERTS


def _follow_until_stopped(_: dict[str, Any], *, as_json: bool) -> None:
    from agentd.app.cli.following import follow

    with reporting(as_json=as_json):
        asyncio.run(follow(as_json=as_json))


app = grouped(ALERTS, {"follow": _follow_until_stopped})


@app.command()
def watch(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Alert you if heartbeats have stopped to come; it asks no daemon, and a timer of systemd runs it.

    Uses the ways to reach you that need no daemon: command, webhook, apprise. Exit code 1 if one of them
    failed; it is tried again the next time.
    """
    from agentd.app.cli.missing import missing  # loads what opens the ways to reach the owner

    with reporting(as_json=as_json):
        look = missing(daemon_places(os.environ, config))
        show(look.as_json(), _looked, as_json=as_json)
        if look.failed:
            raise typer.Exit(1)


def _looked(result: dict[str, Any]) -> str:
    lines = [f"{result['state']}: {result['text']}"]
    lines += [f"  told by {name}" for name in result["sent"]]
    lines += [f"  not told by {name}: {why}" for name, why in result["failed"].items()]
    return "\n".join(lines)
