"""`agentd alerts`: prints alerts as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agentd.app.cli.ask import owners_times, sockets
from agentd.app.cli.declared import group_of
from agentd.app.cli.group import deferred
from agentd.app.cli.report import as_line, note, reporting, say
from agentd.interfaces.client.connection import connect
from agentd.interfaces.client.conversation import join_session
from agentd.interfaces.commands.alerts import ALERTS
from agentd.interfaces.commands.plain import TimeFormatter


def _follow_until_stopped(_: dict[str, Any], *, as_json: bool) -> None:
    with reporting(as_json=as_json):
        asyncio.run(follow(as_json=as_json))


async def follow(*, as_json: bool) -> None:
    """Print each alert, and when the daemon goes or returns. Raises DaemonUnreachable,
    RemoteError.
    """
    async with connect(sockets()) as connection:
        times = await owners_times(connection)
    async with join_session(sockets(), "main", Printer(times, as_json=as_json)):
        await asyncio.Event().wait()


class Printer:
    """Prints the alerts among the daemon's notifications, each once: after a crash the daemon
    repeats those it has not recorded as delivered.
    """

    def __init__(self, times: TimeFormatter, *, as_json: bool) -> None:
        self._times = times
        self._as_json = as_json
        self._printed: set[Any] = set()  # their ids

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Print an alert."""
        if method == "_agentd/alert" and params.get("id") not in self._printed:
            self._printed.add(params.get("id"))
            at, text = self._times.short(str(params.get("at"))), params.get("text", "")
            say(as_line(dict(params)) if self._as_json else f"[{at}] {text}")

    async def requested(self, method: str, params: Mapping[str, Any]) -> None:
        """Return None: no user is present to answer."""

    def made_smaller(self, name: str, size: int, made: int) -> None:
        """Do nothing: no images are sent."""

    def lost(self) -> None:
        """Note on standard error that the daemon has gone."""
        note("the daemon has gone; waiting for it to come back")

    def regained(self) -> None:
        """Note on standard error that the daemon is back."""
        note("the daemon is back")


app = group_of(ALERTS, {"follow": _follow_until_stopped})
app.later |= deferred(
    {
        "watch": (
            "missing_daemon:watch",
            (
                "Alert you if heartbeats have stopped to come; it asks no daemon, and a timer of "
                "systemd runs it."
            ),
        )
    }
)
