"""`agentd heartbeat`: run a beat, and see what the others came to."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, ask
from agentd.cli.group import Group
from agentd.cli.plain import fields, table, words
from agentd.cli.report import AsJson, reporting, show

app = Group("Run the heartbeat, and see why it spoke or kept silent.")


@app.command()
def run(
    force: Annotated[bool, typer.Option(help="Pass every gate but budget and lane.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run one beat now."""
    with reporting(as_json=as_json):
        beat = ask("heartbeat/run", force=force, within=MODEL_SECONDS)
        show(beat, _beat, as_json=as_json)


@app.command()
def history(
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what past beats came to."""
    columns = ("at", "outcome", "reason", "tokens", "cost_usd", "text")
    with reporting(as_json=as_json):
        show(
            ask("heartbeat/history", limit=limit),
            lambda result: table(result["runs"], columns, "no beat has run yet"),
            as_json=as_json,
        )


@app.command()
def explain(as_json: AsJson = False) -> None:
    """Say what the next beat would do, gate by gate."""
    with reporting(as_json=as_json):
        show(ask("heartbeat/explain"), fields, as_json=as_json)


@app.command()
def pause(
    duration: Annotated[
        str | None, typer.Argument(help='For how long, like "2h"; without it the beats go on.')
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Pause the heartbeat, or let it go on."""
    with reporting(as_json=as_json):
        show(ask("heartbeat/pause", duration=duration), fields, as_json=as_json)


def _beat(beat: dict[str, Any]) -> str:
    line = f"{words(beat.get('outcome'))}: {words(beat.get('reason'))}"
    return f"{line}\n{beat['text']}" if beat.get("text") else line
