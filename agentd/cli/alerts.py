"""`agentd alerts`: what the agent had to say unasked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentd.cli.ask import QUICK_SECONDS, answer, owners_times, sockets
from agentd.cli.group import Group
from agentd.cli.plain import fields, table
from agentd.cli.report import AsJson, as_line, note, reporting, say

if TYPE_CHECKING:
    from agentd.cli.times import Times

app = Group("See, follow and acknowledge alerts.")


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many, the newest first.")] = 20,
    unacked: Annotated[bool, typer.Option(help="Only those still to be acknowledged.")] = False,
    as_json: AsJson = False,
) -> None:
    """List alerts."""
    columns = ("id", "at", "acked", "origin", "delivered", "text")
    answer(
        "alerts/list",
        lambda result: table(result["alerts"], columns, "no alerts"),
        as_json=as_json,
        limit=limit,
        unacked=unacked,
    )


@app.command()
def follow(as_json: AsJson = False) -> None:
    """Print alerts as they come, until Ctrl-C; a restart of the daemon does not end it."""
    import asyncio

    with reporting(as_json=as_json):
        asyncio.run(_follow(as_json=as_json))


@app.command()
def ack(
    number: Annotated[int, typer.Argument(metavar="ID", min=1, help="The alert's id.")],
    as_json: AsJson = False,
) -> None:
    """Mark an alert as seen."""
    answer("alerts/ack", fields, as_json=as_json, id=number)


@app.command("test")
def try_(as_json: AsJson = False) -> None:
    """Send a test alert to every sink that is on, and see where it arrived."""
    answer("alerts/test", fields, as_json=as_json, within=2 * QUICK_SECONDS)


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

    def lost(self) -> None:
        """Say so beside the alerts."""
        note("the daemon has gone; waiting for it to come back")

    def regained(self) -> None:
        """Say so beside the alerts."""
        note("the daemon is back")


async def _follow(*, as_json: bool) -> None:
    import asyncio

    from agentd.client.connection import connected
    from agentd.client.conversation import joined

    async with connected(sockets()) as connection:
        times = await owners_times(connection)
    async with joined(sockets(), "main", Printer(times, as_json=as_json)):
        await asyncio.Event().wait()
