"""`agentd heartbeat`: run a beat, and see what the others came to."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, answer
from agentd.cli.group import Group
from agentd.cli.plain import fields, table, words
from agentd.cli.report import AsJson

app = Group("Run the heartbeat, and see why it spoke or kept silent.")

_FINAL = frozenset({"budget", "busy"})  # what `--force` does not pass either


@app.command()
def run(
    force: Annotated[
        bool, typer.Option(help="Pass every gate but the budget and a busy conversation.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run one beat now."""
    answer("heartbeat/run", _beat, as_json=as_json, force=force, within=MODEL_SECONDS)


@app.command()
def history(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, the newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what past beats came to."""
    columns = ("at", "outcome", "reason", "tokens", "cost_usd", "text")
    answer(
        "heartbeat/history",
        lambda result: table(result["runs"], columns, "no beat has run yet"),
        as_json=as_json,
        limit=limit,
    )


@app.command()
def explain(as_json: AsJson = False) -> None:
    """Say what the next beat would do, gate by gate."""
    answer("heartbeat/explain", _explained, as_json=as_json)


@app.command()
def pause(
    duration: Annotated[
        str | None, typer.Argument(help='For how long, like "2h"; without it the beats go on.')
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Let the beats go on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Pause the heartbeat, or let it go on."""
    if resume and duration is not None:
        raise typer.BadParameter("give a duration or --resume, not both")
    answer("heartbeat/pause", _paused, as_json=as_json, duration=duration)


def _explained(result: dict[str, Any]) -> str:
    """The gates, and of the checklist what a beat would look at."""
    checklist = result["checklist"]
    timed = [f"{item['text']}{' (now)' if item['due'] else ''}" for item in checklist["items"]]
    wrong = checklist.get("mistakes") or []
    seen = {
        **({"cannot be read": why} if (why := checklist.get("unreadable")) else {}),
        **({"there is no file": "HEARTBEAT.md"} if checklist.get("missing") else {}),
        **({"times_that_count_as_none": "\n".join(wrong)} if wrong else {}),
        "entries_for_each_beat": checklist["open"],
        "entries_with_a_time": "\n".join(timed) or "none",
    }
    return fields({**result, "checklist": seen})


def _paused(result: dict[str, Any]) -> str:
    until = result["paused_until"]
    return f"paused until {until}" if until else "not paused: the beats go on"


def _beat(beat: dict[str, Any]) -> str:
    outcome, reason, text = (str(beat.get(key) or "") for key in ("outcome", "reason", "text"))
    if outcome == "alert":
        return f"alerted: {text or words(reason)}"
    line = f"{words(outcome)}: {words(reason)}"
    if outcome == "skipped" and reason not in _FINAL:
        line += " (`agentd heartbeat run --force` runs it anyway)"
    return f"{line}\n{text}" if text else line
