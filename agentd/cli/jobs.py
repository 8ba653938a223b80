"""`agentd jobs`: reminders and questions at set times."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentd.cli.ask import MODEL_SECONDS, answer
from agentd.cli.group import Group
from agentd.cli.plain import fields, table, visible, words
from agentd.cli.report import AsJson

app = Group("Have something said or done at set times.")

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, heartbeat or graph.")]


@app.command("list")
def list_(
    past: Annotated[bool, typer.Option(help="Also those that are done.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the jobs and their next five times."""
    answer("jobs/list", _listed, as_json=as_json, past=past)


@app.command()
def add(
    text: Annotated[str, typer.Argument(help="What to tell you, or what to ask the model.")],
    at: Annotated[str | None, typer.Option(help='Once: "2026-12-01 09:00".')] = None,
    in_: Annotated[str | None, typer.Option("--in", help='Once, from now: "2h".')] = None,
    every: Annotated[str | None, typer.Option(help='Again and again: "1d".')] = None,
    cron: Annotated[str | None, typer.Option(help='By the clock: "0 9 * * 1-5".')] = None,
    zone: Annotated[str | None, typer.Option(help="IANA zone; yours without it.")] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask the model; else TEXT is told.")] = False,
    session: Annotated[
        str | None, typer.Option(help='What a question sees: "main" or "isolated".')
    ] = None,
    misfire: Annotated[
        str | None, typer.Option(help='Missed times: "skip", "once" or "all".')
    ] = None,
    model: Annotated[str | None, typer.Option(help="Another model for the question.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a job."""
    times: dict[str, Any] = {"at": at, "in": in_, "every": every, "cron": cron, "zone": zone}
    options: dict[str, Any] = {"ask": ask, "session": session, "misfire": misfire, "model": model}
    answer("jobs/add", fields, as_json=as_json, text=text, **times, **options)


@app.command()
def remove(job: JobId, as_json: AsJson = False) -> None:
    """Remove a job and its history."""
    answer("jobs/remove", lambda _: f"removed {job}", as_json=as_json, id=_id(job))


@app.command()
def run(job: JobId, as_json: AsJson = False) -> None:
    """Run a job now; its times stay as they are."""
    answer("jobs/run", _run, as_json=as_json, id=_id(job), within=MODEL_SECONDS)


@app.command()
def history(
    job: Annotated[str | None, typer.Argument(metavar="[ID]", help="One job's alone.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, the newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List what jobs came to, and which times were missed."""
    columns = ("job", "due", "until", "at", "outcome", "reason", "tokens", "cost_usd", "text")
    answer(
        "jobs/history",
        lambda result: table(result["runs"], columns, "no job has run yet"),
        as_json=as_json,
        id=None if job is None else _id(job),
        limit=limit,
    )


def _id(job: str) -> int | str:
    return int(job) if job.isascii() and job.isdigit() else job


def _listed(result: dict[str, Any]) -> str:
    return "\n".join(line for job in result["jobs"] for line in _lines(job))


def _lines(job: dict[str, Any]) -> list[str]:
    when = ", ".join(f"{name} {value}" for name, value in job["schedule"].items())
    head = f"{job['id']}  {job['kind']}  {when}  {visible(' '.join(job['text'].split()))}"
    times = job["next"] or ["nothing to come" if job["enabled"] else "off"]
    return [head, *(f"    {at}" for at in times), *_last(job.get("last"))]


def _last(run: dict[str, Any] | None) -> list[str]:
    """What a job of the daemon's own came to when it was done last."""
    return [] if run is None else [f"    last {run['at']}  {visible(' '.join(_run(run).split()))}"]


def _run(run: dict[str, Any]) -> str:
    line = f"{words(run.get('outcome'))}: {words(run.get('reason'))}"
    return f"{line}\n{run['text']}" if run.get("text") else line
