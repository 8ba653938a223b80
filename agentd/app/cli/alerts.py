"""`agentd alerts`: the daemon's alerts as they come, and one when it is the daemon that is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from agentd.app.cli.ask import owners_times, sockets
from agentd.app.cli.declared import grouped
from agentd.app.cli.report import AsJson, ConfigFile, as_line, note, reporting, say, show
from agentd.core.paths import daemon_places
from agentd.interfaces.commands.alerts import ALERTS

if TYPE_CHECKING:
    from agentd.app.config import Config
    from agentd.automation.alerts.watch import WatchLook
    from agentd.core.paths import Places
    from agentd.interfaces.commands.plain import Times


_MUTE = (
    "no way to reach you works without the daemon; "
    "set [alerts] command, webhook_url or a table [alerts.apprise.NAME]"
)


def _follow_until_stopped(_: dict[str, Any], *, as_json: bool) -> None:
    import asyncio

    with reporting(as_json=as_json):
        asyncio.run(_follow(as_json=as_json))


app = grouped(ALERTS, {"follow": _follow_until_stopped})


@app.command()
def watch(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Alert you if heartbeats have stopped to come; it asks no daemon, and a timer of systemd runs it.

    Uses the ways to reach you that need no daemon: command, webhook, apprise. Exit code 1 if one of them
    failed; it is tried again the next time.
    """
    import asyncio

    from agentd.app.config import load

    places = daemon_places(os.environ, config)
    with reporting(as_json=as_json):
        look = asyncio.run(_look(load(places.config_file, os.environ), places))
        show(look.as_json(), _looked, as_json=as_json)
        if look.failed:
            raise typer.Exit(1)


async def _look(config: Config, places: Places) -> WatchLook:
    import asyncio

    from agentd.app.assembly.alerting import open_outward
    from agentd.automation.alerts.watch import Watch, WatchLook
    from agentd.automation.heartbeat.lifesign import found
    from agentd.core.clock import SystemClock
    from agentd.core.redaction import Redactor

    async with open_outward(config.alerts, os.environ, Redactor()) as sinks:
        if not sinks:
            return WatchLook("mute", _MUTE)
        clock = SystemClock(config.agent.timezone)
        sign = await asyncio.to_thread(found, places.life_sign)
        return await Watch(sinks, places.watched, clock).look(sign, _failure(os.environ))


def _failure(environ: Mapping[str, str]) -> str:
    """How the service has ended, where systemd says so to what it runs on that occasion."""
    unit = environ.get("MONITOR_UNIT", "")
    if not unit:
        return ""
    how = environ.get("MONITOR_SERVICE_RESULT", "failed")
    status = environ.get("MONITOR_EXIT_STATUS", "")
    return f"{unit} ended with {how}" + (f" ({status})" if status else "")


def _looked(result: dict[str, Any]) -> str:
    lines = [f"{result['state']}: {result['text']}"]
    lines += [f"  told by {name}" for name in result["sent"]]
    lines += [f"  not told by {name}: {why}" for name, why in result["failed"].items()]
    return "\n".join(lines)


class Printer:
    """Prints the alerts among the daemon's notifications, each once: a daemon that was killed tells again
    what it has not noted as told.
    """

    def __init__(self, times: Times, *, as_json: bool) -> None:
        self._times = times
        self._as_json = as_json
        self._printed: set[Any] = set()  # their ids

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Print an alert."""
        if method == "_agentd/alert" and params.get("id") not in self._printed:
            self._printed.add(params.get("id"))
            at, text = self._times.told(str(params.get("at"))), params.get("text", "")
            say(as_line(dict(params)) if self._as_json else f"[{at}] {text}")

    async def requested(self, method: str, params: Mapping[str, Any]) -> None:
        """Know no question: nobody sits here."""

    def made_smaller(self, name: str, size: int, made: int) -> None:
        """Never happens: nothing is sent here."""

    def lost(self) -> None:
        """Say so beside the alerts."""
        note("the daemon has gone; waiting for it to come back")

    def regained(self) -> None:
        """Say so beside the alerts."""
        note("the daemon is back")


async def _follow(*, as_json: bool) -> None:
    import asyncio

    from agentd.interfaces.client.connection import connected
    from agentd.interfaces.client.conversation import joined

    async with connected(sockets()) as connection:
        times = await owners_times(connection)
    async with joined(sockets(), "main", Printer(times, as_json=as_json)):
        await asyncio.Event().wait()
