"""`agentd alerts watch`: checks from outside whether the daemon is missing, and alerts the owner if
so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import typer

from agentd.app.assembly.alerting import open_outward
from agentd.app.cli.report import AsJson, ConfigFile, reporting, show
from agentd.app.config import Config, load
from agentd.automation.alerts.watch import Watch, WatchLook
from agentd.automation.heartbeat.lifesign import read_sign
from agentd.core.clock import SystemClock
from agentd.core.paths import DaemonPaths, daemon_places
from agentd.core.redaction import Redactor

_MUTE = (
    "no way to reach you works without the daemon; "
    "set [alerts] command, webhook_url or a table [alerts.apprise.NAME]"
)


def watch(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Alert you if heartbeats have stopped to come; it asks no daemon, and a timer of systemd runs
    it.

    Uses the ways to reach you that need no daemon: command, webhook, apprise. Exit code 1 if one of
    them failed; it is tried again the next time.
    """
    with reporting(as_json=as_json):
        look = missing(daemon_places(os.environ, config))
        show(look.as_json(), _watch_text, as_json=as_json)
        if look.failed:
            raise typer.Exit(1)


def _watch_text(result: dict[str, Any]) -> str:
    lines = [f"{result['state']}: {result['text']}"]
    lines += [f"  told by {name}" for name in result["sent"]]
    lines += [f"  not told by {name}: {why}" for name, why in result["failed"].items()]
    return "\n".join(lines)


def missing(places: DaemonPaths) -> WatchLook:
    """Check once, alert the owner if the daemon is missing, and return the result. Raises
    ConfigError, or AgentdError if the record of sent alerts cannot be written.
    """
    return asyncio.run(_look(load(places.config_file, os.environ), places))


async def _look(config: Config, places: DaemonPaths) -> WatchLook:
    async with open_outward(config.alerts, os.environ, Redactor()) as sinks:
        if not sinks:
            return WatchLook("mute", _MUTE)
        clock = SystemClock(config.agent.timezone)
        sign = await asyncio.to_thread(read_sign, places.life_sign)
        return await Watch(sinks, places.watched, clock).look(sign, _failure(os.environ))


def _failure(environ: Mapping[str, str]) -> str:
    """Return how the daemon's service ended, from the variables that systemd sets for a unit
    started by OnFailure=; "" if they are not set.
    """
    unit = environ.get("MONITOR_UNIT", "")
    if not unit:
        return ""
    how = environ.get("MONITOR_SERVICE_RESULT", "failed")
    status = environ.get("MONITOR_EXIT_STATUS", "")
    return f"{unit} ended with {how}" + (f" ({status})" if status else "")
