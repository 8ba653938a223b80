"""`agentd alerts follow`: the daemon's alerts as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.app.cli.ask import owners_times, sockets
from agentd.app.cli.declared import grouped
from agentd.app.cli.report import as_line, note, reporting, say
from agentd.interfaces.commands.alerts import ALERTS

if TYPE_CHECKING:
    from agentd.interfaces.commands.plain import Times


def _follow_until_stopped(_: dict[str, Any], *, as_json: bool) -> None:
    import asyncio

    with reporting(as_json=as_json):
        asyncio.run(_follow(as_json=as_json))


app = grouped(ALERTS, {"follow": _follow_until_stopped})


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
