"""The alerts of the daemon as they come, printed until somebody stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.app.cli.ask import sockets
from agentd.app.cli.calling import owners_times
from agentd.app.cli.report import as_line, note, say
from agentd.interfaces.client.connection import connected
from agentd.interfaces.client.conversation import joined

if TYPE_CHECKING:
    from agentd.interfaces.commands.plain import Times


async def follow(*, as_json: bool) -> None:
    """Print each alert, and that the daemon has gone or is back. Raises DaemonUnreachable, RemoteError."""
    async with connected(sockets()) as connection:
        times = await owners_times(connection)
    async with joined(sockets(), "main", Printer(times, as_json=as_json)):
        await asyncio.Event().wait()


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
            at, text = self._times.short(str(params.get("at"))), params.get("text", "")
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
