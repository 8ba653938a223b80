"""`agentd alerts`: what the agent had to say unasked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentd.cli.ask import QUICK_SECONDS, ask, sockets
from agentd.cli.group import Group
from agentd.cli.plain import fields, table, words
from agentd.cli.report import AsJson, as_line, note, reporting, show

app = Group("See, follow and acknowledge alerts.")


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    unacked: Annotated[bool, typer.Option(help="Only those not yet acknowledged.")] = False,
    as_json: AsJson = False,
) -> None:
    """List alerts."""
    columns = ("id", "at", "acked", "origin", "delivered", "text")
    with reporting(as_json=as_json):
        show(
            ask("alerts/list", limit=limit, unacked=unacked),
            lambda result: table(result["alerts"], columns, "no alerts"),
            as_json=as_json,
        )


@app.command()
def follow(as_json: AsJson = False) -> None:
    """Print alerts as they come, until Ctrl-C; a restart of the daemon does not end it."""
    import asyncio

    with reporting(as_json=as_json):
        asyncio.run(_follow(Printer(as_json=as_json)))


@app.command()
def ack(
    number: Annotated[int, typer.Argument(metavar="ID", help="The alert's id.")],
    as_json: AsJson = False,
) -> None:
    """Mark an alert as seen."""
    with reporting(as_json=as_json):
        show(ask("alerts/ack", id=number), fields, as_json=as_json)


@app.command("test")
def try_(as_json: AsJson = False) -> None:
    """Send a test alert to every sink that is on, and see where it arrived."""
    with reporting(as_json=as_json):
        show(ask("alerts/test", within=2 * QUICK_SECONDS), fields, as_json=as_json)


def alert_line(alert: Mapping[str, Any]) -> str:
    """An alert in one paragraph."""
    return f"[{words(alert.get('at'))}] {alert.get('text', '')}"


class Printer:
    """Prints the alerts among the daemon's notifications."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Print an alert."""
        if method == "_agentd/alert":
            print(as_line(dict(params)) if self._as_json else alert_line(params), flush=True)

    async def requested(self, method: str, params: Mapping[str, Any]) -> None:
        """Know no question: nobody sits here."""

    def lost(self) -> None:
        """Say so beside the alerts."""
        note("the daemon has gone; waiting for it to come back")

    def regained(self) -> None:
        """Say so beside the alerts."""
        note("the daemon is back")


async def _follow(printer: Printer) -> None:
    import asyncio

    from agentd.client.conversation import joined

    async with joined(sockets(), "main", printer):
        await asyncio.Event().wait()
